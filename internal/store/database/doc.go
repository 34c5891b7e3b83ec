// Package database opens the database that the configuration names, SQLite files or a PostgreSQL, and replaces it
// after a move to another one.
//
// State. The open database, and the file database.json in the data directory, which says which PostgreSQL the
// directory belongs to (Pairing). Outage remembers since when the database cannot be reached.
//
// Failure. A data directory that belongs to another database is refused with the code Conflict. A database that
// cannot be reached is an error for which retry.IsAway is true.
//
// The wiring of the server, migrations, backups and the doctor call it.
package database
