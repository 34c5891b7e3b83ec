// Package disk simulates a file system that forgets after a loss of power what was not synced.
//
// A Disk keeps two states in memory. Programs see the current one. The stored one is what a
// disk is certain to have: the content of a file is stored when the file is synced, and the names in a
// directory when the directory is synced. POSIX promises no more. Most file systems store more, and
// programs must not rely on it.
//
// LosePower replaces the current state. It drops everything that was not stored, or keeps a random part of it, as
// disks do that write out of order: of the writes to a file, some are kept, wholly or in sectors, and of
// the changes of names, some are kept. Of two writes to one sector, an earlier one never replaces a later one,
// because the page cache holds one version of a page.
//
// Faults make calls fail at random. A sync that fails never stores what it should have stored, even if a later
// sync succeeds: Linux reports such an error once and then considers the pages clean.
//
// Package mount mounts a Disk with FUSE.
package disk
