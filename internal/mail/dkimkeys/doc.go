// Package dkimkeys holds the DKIM keys of channels: it reads them from files and environment
// variables, follows changes of the files, and learns from the DNS when the record of a new key
// is published.
//
// State. The keys in force, in memory, one Keyring a channel; and the records that were seen in the
// DNS, in dkim-records.json of the data directory.
//
// Failure. A key that cannot be read any more stays in force as it was read before. A file that
// cannot be used is read again until it can.
//
// Package channels calls it. Signatures themselves are the business of package dkim.
package dkimkeys
