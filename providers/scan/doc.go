// Package scan reads a few members out of a JSON value without decoding the
// rest of it.
//
// A record can be 4 MiB of a tool's output, and a document 64 MiB, of which a
// few short members matter. Members, Elements and Member walk over one value:
// they pass over what nobody asked for and allocate nothing. What they give
// are slices of the input, as the program wrote them; Text, Time and Names
// read a value of that kind, Is and the other questions only look at it.
//
// Promises:
//
//   - On valid JSON, as providers.Record holds it, the walk gives each member
//     and each element that encoding/json finds, in the order of the input,
//     those of a repeated key included.
//   - On anything else it ends early and never reads outside of the slice. A
//     string, object or array that does not end in the slice is not given; a
//     number that is cut off cannot be told from a whole one.
//   - Time is linear in the bytes that are passed over, memory constant. Text
//     costs as much as the string, Time and Names no more than their bound.
//
// Refusals: it does not say whether the input is valid JSON, it does not
// unescape keys, and it reads no numbers: each program writes its own kinds.
package scan
