// Package providertest is the contract that every provider must pass, run over
// files that the real programs wrote.
//
// Run takes a provider and a corpus of artifacts and checks, for each:
//
//   - drafts have only the fields of their kind, texts are trimmed and not
//     empty, a start is followed by waiting_on_agent and a final by
//     waiting_on_user or by the next start;
//   - keys are unique, and the same however the records are split over
//     projectors that were made again from State;
//   - State never has more than providers.StateMax bytes;
//   - a gap anywhere clears the turn and gives its failure;
//   - cut and damaged records never panic and keep all bounds;
//   - a Rewinder knows at every border the turn that a full projection knows,
//     and gives later drafts to the same turns;
//   - failures carry no text of the provider.
//
// Golden compares the drafts of one artifact with a text file that a person
// wrote from the transcript. There is no way to generate that file.
//
// Bounds: Run projects a prefix of every artifact for every record (quadratic),
// so corpus files should stay below a few hundred records; longer ones are
// checked at 100 to 200 borders spread over the file.
package providertest
