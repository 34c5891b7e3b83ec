// Package backup writes all data of a server into one stream while it runs, verifies such a stream, and restores it into an empty directory.
//
// A backup is a tar archive (POSIX.1-2001) of named parts with a manifest at its end; see Header and Manifest. The parts are copied at
// different times, and their order makes them consistent: first the events that may not be matched yet, then the days, then the keys, and
// the control tables last. An event that is matched while the backup runs is in the events and in a day; a restore uses it once. The control
// tables come last so that they contain every row that the manifests of the days refer to.
//
// A truncated or damaged backup is refused as a whole, and the error names the damaged part. A backup file gets its final name only after it
// is complete and was read back. A failed restore leaves the directory empty. A killed restore leaves the file .restoring: no server starts
// in that directory, and the next restore starts over.
//
// The API and the commands backup and restore call it. Server adapts it to a running server.
package backup
