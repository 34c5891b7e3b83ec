// Package inbound is the mail server that receives bounces and mail to unsubscribe. It
// speaks SMTP (RFC 5321) with SIZE, 8BITMIME, SMTPUTF8, PIPELINING, STARTTLS and enhanced
// status codes. It accepts mail for its own domains only: for the signed return addresses
// of sent messages, for postmaster and for abuse. It refuses all other recipients at RCPT,
// relays nothing, answers no mail and writes no bounce.
//
// State. A session keeps its commands since EHLO in memory. The server answers 250 to a
// message once Options.Take has returned, when its effects are durable; the peer keeps the
// message until then.
//
// Failure. If a message cannot be stored now, the answer is 451 and the peer tries again.
// Ambiguous input ends the connection: a line that does not end in CR LF (in commands and in
// messages, before and after STARTTLS), and input that arrives before the answer for which
// it must wait. Each length, number and time has a limit, named in limits.go.
//
// The server does not use a library, because the line guard must stand between TLS and the
// commands, where the libraries have no hook.
package inbound
