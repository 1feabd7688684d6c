// Package e2e runs the published programs, Claude Code and Codex CLI, in real
// tmux panes against a model server on loopback (package model) and checks what
// "steno agent events --follow" says about them. It has no code of its own: it
// is a test with the build tag e2e, run by "make e2e".
//
// Promises:
//
//   - The programs are the versions of testdata/e2e/package-lock.json, installed
//     by npm without scripts into a cache outside the tree.
//   - Each scenario runs in namespaces of its own: no network but loopback, and
//     no process that is not its own. When it ends, so does every process in
//     there. It has a HOME, a tmux server, a model server and a daemon.
//   - What has to come is written in the tables of claude_test.go and
//     codex_test.go, from what the model was asked to say and what the screen
//     shows. A row that is missing, wrong, in another order or too many fails.
//   - The driver waits for the screen, the model server or an event, never for
//     a time.
//
// On a failure the directory of the scenario stays, and its path is printed:
// the programs' files, the screen of each pane, the pages, the daemon's log and
// what the model was asked.
//
// A scenario that Steno does not hold yet is skipped with the reason and
// counted; STENO_E2E_KNOWN=1 runs it. STENO_E2E_CACHE moves the cache.
//
// Without npm, unshare or tmux the suite says what is missing and skips; with
// CI=true it fails.
//
// Bounds: 60 seconds for each wait, 15 minutes in all, three scenarios at once.
package e2e
