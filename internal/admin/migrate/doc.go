// Package migrate moves all data from one database to another: while a server runs (Mover), and while none does
// (Migration). Package store/move does the copying.
//
// State. Mover knows the move that runs, or the last one. Marks in both databases and the
// pairing of the data directory survive a stop.
//
// Failure. A move that fails or is stopped leaves the source database in use. The API and `fanfare migrate` call it.
package migrate
