// Package faults breaks things on purpose and counts what Steno loses. It has
// no code of its own: it is tests, run in a short form by "go test" and in a
// long one by "make faults", which writes the table of RELIABILITY.md.
//
// Promises:
//
//   - The daemon under test is the built program, with the race detector where
//     a C compiler exists and nothing is measured, in a HOME, state directory and
//     socket of its own, and where the system allows it among no processes but its own.
//   - What has to be told is read from the agents' files after the fact: every
//     complete record, in the order of its file. What was told comes over the
//     real socket. The two share no code with Steno's providers.
//   - A reader checks the one story while everything else fails: sequences
//     that grow by one, no event id twice, no sequence that ever names another
//     event, also when it is read again.
//   - Each fault reports how often it was tried, what was lost, repeated and
//     reused, and how long recovery took. Anything above zero fails.
//   - A pause is part of a fault, never a way to wait for something.
//
// Agents are this test binary under another name: a daemon sees every process
// of its user, so only agents below the world's directory count.
//
// STENO_FAULTS=long runs the long form, STENO_SOAK=10m the soak of that
// length, STENO_FAULTS_SEED repeats the random choices of a run,
// STENO_FAULTS_KEEP=1 keeps the directory of a test that fails, and
// STENO_FAULTS_REQUIRED=1 makes a missing tool (strace, user namespaces) a
// failure instead of a skip.
//
// Bounds: 8 agents, a record of 5 MiB, patience of a minute for each condition
// (STENO_FAULTS_PATIENCE multiplies it).
package faults
