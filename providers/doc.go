// Package providers is the vocabulary between the programs that Steno observes
// and the rest of Steno.
//
// A provider knows one program's artifacts: where they lie, which path is whose,
// and what a record means. It turns records of one artifact into drafts: what
// happened, in the provider's own words. A draft has no sequence, no process
// and no pane, so a parser cannot lie about those; the observer adds them.
//
// The flow is one way:
//
//	artifact bytes --tail--> Record --Project--> Draft --seal--> Event
//
// Promises that every provider keeps, and that package providertest checks:
//
//   - Project never panics and never fails: a record that cannot be used gives
//     one observer_failure draft, or nothing if the provider's rules say so.
//   - The same bytes give the same drafts with the same keys, however they are
//     split over reads and restarts.
//   - Keys are stable: they come from ids that the program wrote, or from the
//     record's position, never from a clock or a counter in memory.
//   - State is at most StateMax bytes and is all that a projector remembers.
//   - No draft other than plan, assistant_message, turn_final and
//     approval_requested carries text of the provider.
//
// This package imports nothing of ours.
package providers
