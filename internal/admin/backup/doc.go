// Package backup writes all data of a server into one stream while it runs, verifies such a stream, and restores it into
// an empty directory.
//
// State. None of its own. A backup is a tar archive (POSIX.1-2001) of named parts with a manifest at its end; see Header
// and Manifest. The parts are of different moments, and their order makes them consistent: first the events that were
// accepted and may not be matched yet, then the days, then the keys, and the control tables last. An event that is matched
// in between is in both and is used once. The control tables are copied last, so they have every row that a manifest of a
// day refers to.
//
// Failure. A truncated or damaged backup is refused as a whole, with the damaged part. A file gets its final name when it
// is complete and was read back. A restore that fails leaves the directory empty. A restore that is killed leaves the file
// .restoring: no server starts there, and the next restore begins again.
//
// The API and the commands backup and restore call it. Server adapts it to a running server.
package backup
