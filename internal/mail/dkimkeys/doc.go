// Package dkimkeys manages the DKIM keys of channels: it reads them from files and environment
// variables, follows changes of the files, and learns from the DNS when the record of a new key
// is published.
//
// State. The active keys are in memory, in one Keyring per channel. The records that were seen in
// the DNS are in the file dkim-records.json in the data directory.
//
// Failure. If a key can no longer be read, the previously loaded key stays active. An unusable
// file is read again until it can be used.
//
// Package channels calls it. Package dkim creates the signatures.
package dkimkeys
