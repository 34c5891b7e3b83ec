// Package migrate moves all data from one database to another, either while a server runs (Mover) or while none
// runs (Migration). Package store/move copies the data.
//
// State. Mover knows the running move or the last one. Marks in both databases and the
// pairing of the data directory survive a stop.
//
// Failure. A move that fails or is stopped leaves the source database in use. The API and `fanfare migrate` call it.
package migrate
