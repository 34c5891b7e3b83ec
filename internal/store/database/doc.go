// Package database opens the database that the configuration names, SQLite files or PostgreSQL, and replaces it after a move to another
// database.
//
// It holds the open database. The file database.json in the data directory names the PostgreSQL that the directory belongs to (Pairing).
// Outage records since when the database cannot be reached.
//
// A data directory that belongs to another database is refused with the code Conflict. For a database that cannot be reached, calls return an
// error for which retry.IsAway is true.
//
// The server, migrations, backups and doctor call it.
package database
