// Package wire holds the JSON objects of the Wakterm Agent API v1 as Steno
// serves them, and nothing else: no transport, no storage.
//
// The producer prints every optional field as an explicit null and never
// leaves a key out. Readers tolerate both, and tolerate unknown keys.
// Timestamps are RFC 3339 in UTC with a trailing Z.
//
// The package imports nothing of ours, so that the observer can write an
// event's JSON once and ipc and the CLI can read it.
package wire

// Schema identifiers of the contract.
const (
	SchemaAPI      = "wakterm.agent-api.v1"
	SchemaEvents   = "wakterm.agent-events.v1"
	SchemaApproval = "wakterm.agent-approval.v1"
)

// Major is the only major version of the contract that Steno speaks.
const Major = 1
