// Package readdb opens the SQLite databases of other programs for reading.
//
// Promises:
//
//   - No file is opened for writing, made or removed: the database, its log of
//     writes (-wal) and its shared memory (-shm) are opened O_RDONLY, whatever
//     SQLite alone would do.
//   - No call goes on much after the end of its context: 0.2 s more, at most, where
//     the shared memory is damaged.
//   - No error holds what a database says.
//
// A reader takes advisory locks on the open files, and they are gone with its
// transaction. What a database must have beside it, and what an error means for
// the session, the provider decides.
package readdb
