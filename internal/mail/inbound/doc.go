// Package inbound is the mail server that accepts bounces and unsubscribe emails. It
// speaks SMTP (RFC 5321) with SIZE, 8BITMIME, SMTPUTF8, PIPELINING, STARTTLS and enhanced
// status codes, and accepts mail only for its own domains: for addresses that were signed
// when a message was sent, for postmaster and for abuse. It refuses all other recipients
// at RCPT. It relays no mail, answers no mail and sends no bounces.
//
// State. Each session keeps its transaction in memory. The server answers a message with
// 250 after Options.Take has returned, when the consequences are durable. The peer keeps
// the message until then.
//
// Failure. The server answers 451 if it cannot process a message now, and the peer tries
// again. It ends the connection if two readers could understand the input differently: a
// line that does not end in CR LF (in commands and in messages, before and after
// STARTTLS), and input that arrives before the reply that it must wait for. Each length,
// number and time has a limit, named in server.go.
//
// Fanfare has its own server because lines must be checked between TLS and the commands, where
// libraries have no hook. Package server starts it; package
// feedback processes its mail.
package inbound
