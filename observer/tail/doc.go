// Package tail knows where we are in an artifact, proves that it is still the
// same file, and gives its complete records.
//
//	f := tail.New(path, mark)
//	b, err := f.Read(256 << 10)
//	// use b.Records, then commit together with
//	m, err := f.MarkAt(f.Offset())
//
// Promises:
//
//   - Only 0x0A ends a record. A partial last line stays in the file.
//   - Chunk invariance: any split of the same bytes over appends and reads gives
//     the same records and the same gaps.
//   - A whole record is one valid JSON object, nested at most 512 deep. Bytes
//     that are none become a gap that names their range; blank lines vanish.
//   - An offset is a record border. That is after a newline, except on a line
//     that holds several records; a border inside such a line is as good a place
//     to go on from, because what follows it reads the same.
//   - The hash of the 4 KiB before the offset decides whether the file is the
//     same. The head hash and the inode only choose the word for a mismatch. On a
//     mismatch nothing is replayed: the file stands at its new last line end.
//   - No descriptor is held between calls. An error changes no state.
//
// Refusals: anything but a regular file (symbolic links are followed), a mark at
// a place that is no border of the last batch.
//
// Bounds: a record is providers.MaxRecord bytes; a longer line is drained in
// 64 KiB pieces, 64 MiB a call, with constant memory, and is never read twice.
// An append of n bytes costs one open, one fstat and n + 4 KiB of reading. A line
// that arrived in several pieces, or is longer than the batch, is read once more
// when its end is there. On one line there are at most 4,096 records and 16 gaps;
// a line with more is one gap. A batch has 16,384 records, and as many as its last
// line holds. Without Release a File keeps the memory of its last batch.
package tail
