// Package move copies all data from one database to another, and back, while a server
// writes to it or while it is stopped.
//
// State. A mark in the control part of each of the two databases (Mark), and unnamed
// files that end with the process (journal). Each part is copied from a snapshot. The
// journal records the statements of all later transactions of the part in their order,
// and they are replayed in the target. The rows that a statement writes follow from its
// arguments and from the rows of the part, so both databases have the same rows in the
// end. The move checks this: it compares the number of rows and a hash of all rows of
// each table, at one moment of each part. Then writes wait for a moment, the rest of the
// journals is replayed, both databases are marked, and the target is in charge.
//
// Failure. The source is in charge and complete until it is marked. A move that fails,
// is stopped or is killed leaves the source as it was, and the target marked as
// unfinished: a server does not start on it, and the next move empties it. A move never
// fails a write in the source; the move ends instead. Writes wait while a part is shut
// for a moment, while the target catches up at the end, and for the change, at most
// changePatience at a time. Only the last marks have no time limit: from then on one
// database or the other is in charge, and if one does not answer, writes need it anyway.
//
// Limits. A move holds pagesAhead pages of pageBytes in memory for each table, and one
// transaction of replayBytes for each part. The journals may take Options.JournalBytes of
// disk; a move that needs more ends with an error.
package move
