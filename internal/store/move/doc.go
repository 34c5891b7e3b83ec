// Package move takes all that is kept from one database to another, while it is
// written or at rest, and back.
//
// What it keeps: a mark in the control part of each of the two databases (Mark),
// and files without a name that go with the process (journal). Each part is
// copied as it was at one moment; what is written in it from that moment on is
// written down as the statements that did it, in their order, and done again in
// the target. Since what a statement writes follows from its arguments and from
// what was there, both have the same in the end. That they have is checked: the
// number of rows and a hash of all rows of each table, at one moment of each part.
// Then writes wait for a moment, the rest is done again, both databases are
// marked, and the target is in charge.
//
// Failure. Until the source is marked it is in charge and has everything: a move
// that fails, is stopped or is killed leaves it as it was, and the target marked
// as unfinished, which a server does not start on and which the next move empties.
// Nothing that a move does can fail a write in the source; the move is over
// instead. Writes wait while a part is shut for a moment, while the target cannot
// keep up at the end, and for the change, at most changePatience at a time. Only
// the last marks have as long as they take: from then on it is one database or
// the other, and one that says nothing is the one that the writes need anyway.
//
// Limits: pagesAhead pages of pageBytes are held in memory for each table, one
// transaction of replayBytes for each part; the journals take Options.JournalBytes
// of disk, and a move that would need more is broken off.
package move
