// Package dkim signs mail (RFC 6376), by Ed25519 (RFC 8463) and by RSA with SHA-256
// (RFC 8301), both with the canonicalization relaxed/relaxed.
//
// State. A [Private] key is parsed once and says nothing of itself when it is printed.
// A [Key] is one that signs for a domain from a time on; [At] finds those that sign at
// a time. A [Signing] signs the messages of a batch in two steps: [Signing.Sign] hashes
// a message while it is at hand and writes the header fields with headroom for the
// signature, and [Signing.Finish] makes all signatures at once, on all cores. Nothing
// else is kept, and nothing here does I/O.
//
// Failure. A key that cannot be used is an error of [ParsePrivate] that names what is
// wrong with it and shows none of it. Hashing cannot fail; where a signature cannot be
// made, Finish says so, and no message of the batch may leave.
package dkim
