// Package backup writes all that a server keeps into one stream while it works,
// checks such a stream, and restores it into an empty directory.
//
// State. None of its own. A backup is a tar archive (POSIX.1-2001) of named
// parts with a manifest at its end; see Header and Manifest. The order of the
// parts is what makes them fit together although each is of another moment:
// first the events that were accepted and are not known to be matched, then the
// days, then the keys, and the control store last. An event that is matched in
// between is in both and is taken once; what a manifest of a day refers to is in
// the control store that was copied after it.
//
// Failure. A backup that was cut or damaged is refused as a whole, with the part
// and what is wrong with it. A file gets its name when it is complete and was
// read back. A restore that fails leaves the directory empty; one that was
// killed leaves the file .restoring, by which a server refuses to start there
// and another restore begins anew.
package backup
