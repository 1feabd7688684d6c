// Package e2e runs the published programs in real tmux panes against a model
// server on loopback (package model) and checks what "steno agent events
// --follow" says about them. It has no code of its own: it is a test with the
// build tag e2e, run by "make e2e". A program is what register is given in
// <program>_program_test.go, with its scenarios.
//
// Promises:
//
//   - The programs are the versions of testdata/e2e/package-lock.json, installed
//     by npm without scripts into a cache outside the tree. An installation that
//     is not whole is done again.
//   - Each scenario runs in namespaces of its own: no network but loopback, and
//     no process that is not its own. When it ends, so does every process in
//     there. It has a HOME, a tmux server, a model server and a daemon.
//   - What has to come is written in the tables of the scenarios, from what the
//     model was asked to say and what the screen shows. A row that is missing,
//     wrong, in another order or too many fails.
//   - The driver waits for the screen, the model server or an event, never for
//     a time. An Enter that a program swallowed is pressed once more.
//   - testdata/e2e/shapes lists the types of the records that the pinned versions
//     write, and their fields: names alone, no content. "make e2e REWRITE=1"
//     writes it. "make e2e-latest" runs the newest versions and prints what they
//     write that is not there.
//
// A scenario that fails is played once more, alone, when the others have made
// room: a program of others on a busy machine drops keys, and a pinned one will
// not be mended. The run names such scenarios; more than five fail it.
//
// On a failure the directory of the scenario stays, and its path is printed:
// the programs' files, the screen of each pane, the pages, the daemon's log and
// what the model was asked.
//
// A scenario that Steno does not hold yet is skipped with the reason and
// counted; STENO_E2E_KNOWN=1 runs it. STENO_E2E_CACHE moves the cache,
// STENO_E2E_PATIENCE multiplies the bounds of time.
//
// Where something is missing the suite says what and skips; with CI=true or
// STENO_E2E_REQUIRED it fails.
//
// Bounds: 60 seconds for each wait, 5 minutes for a scenario, 10 for an
// installation, three scenarios at once. An installation that was not used for
// 14 days is removed.
package e2e
