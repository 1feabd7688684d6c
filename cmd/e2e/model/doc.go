// Package model is a scripted model server: it answers as Anthropic Messages,
// OpenAI Responses, OpenAI chat completions and Gemini generateContent, with
// and without a stream, on loopback. It lets the real programs run without an
// account.
//
// The last prompt of a request chooses a script by SCENARIO:<name>; the scripts
// are the table in table.go, and one table serves all programs: tools.go knows
// what each calls its tools. The answers that the conversation already has
// choose the step, so that a request that is sent again gets the same answer,
// except for steps that are given a number of times only. A prompt without a
// name and what the programs ask for themselves (titles, summaries, who speaks
// next, the length of a request) have fixed answers and use up no step.
//
// A script can hold: the stream stops there until Release, and Held tells when
// it got there. So a test presses a key during a text without measuring time.
//
// Refusals: an unknown script or one step too many is an answer that says so,
// and that no test expects. Nothing is checked that the programs send beyond
// what is needed to find the prompt.
//
// Bounds: a request has at most 64 MiB; 64 streams may have been held unseen.
package model
