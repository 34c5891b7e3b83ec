// Package dkim signs mail (RFC 6376) with Ed25519 (RFC 8463) and with RSA and SHA-256
// (RFC 8301), both with the canonicalization relaxed/relaxed.
//
// A [Private] key is parsed once and does not reveal its secret when it is printed. A [Key] signs for
// a domain from a given time; [At] returns the keys that sign at a time. A [Signing] signs the
// messages of a batch in two steps: [Signing.Sign] writes the header fields of each message with
// space for the signature, and [Signing.Finish] creates all signatures together, on all cores. The
// package does no I/O.
//
// The errors of [ParsePrivate] describe what is wrong with a key without revealing it. If Finish returns an
// error, no message of the batch may be sent.
package dkim
