// Package apppassword makes app passwords of mailbox accounts and checks them: with PLAIN (RFC 4616) and with SCRAM-SHA-256 (RFC 5802,
// RFC 7677).
//
// An app password has 100 random bits and is shown once. It cannot be guessed, so the iteration count has the minimum of RFC 7677: stretching
// makes guessing slower, which matters only for passwords that people choose. All app passwords of an account have the same salt, because a
// SCRAM server sends the salt before it knows which of them the client has. The first salt of an account is derived from its address, so that
// the salt of an address without an account looks the same.
//
// State. The verifiers are in the mailbox store. A Checker holds the wrong logins of the last minutes by remote address and by account, and
// is lost with the process.
//
// Failure. A wrong name and a wrong password give the same error after the same derivation of keys. Too many wrong logins are refused without a check.
// Errors of the store are passed on, and do not count as wrong logins.
package apppassword
