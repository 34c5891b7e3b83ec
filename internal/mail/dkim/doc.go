// Package dkim signs mail (RFC 6376), by Ed25519 (RFC 8463) and by RSA with SHA-256
// (RFC 8301), both with the canonicalization relaxed/relaxed.
//
// A [Private] key is parsed once and does not reveal itself when it is printed. A [Key] signs for
// a domain from some time on; [At] returns the keys that sign at a time. A [Signing] signs the
// messages of a batch in two steps: [Signing.Sign] writes the header fields of each message with
// space for the signature, and [Signing.Finish] makes all signatures at once, on all cores. The
// package does no I/O.
//
// [ParsePrivate] says what is wrong with a key and shows nothing of it. If Finish returns an
// error, no message of the batch may be sent.
package dkim
