// Package inbound is the mail server at which bounces and mails to unsubscribe come
// in. It speaks SMTP (RFC 5321) with SIZE, 8BITMIME, SMTPUTF8, PIPELINING, STARTTLS
// and enhanced status codes, and takes mail for the product's own domains alone: for
// addresses that were signed when a message left, for postmaster and for abuse. All
// else is refused at RCPT. It relays nothing, answers no mail and makes no bounce.
//
// State. What a session has heard since its EHLO, in memory. A message is answered
// 250 once Options.Take has returned, which is when what follows from it is durable;
// the peer keeps it until then.
//
// Failure. Where a message cannot be kept now the answer is 451, and the peer comes
// again. What two readers could understand differently ends the connection: a line
// that ends otherwise than in CR LF (in commands and in messages, before and after
// STARTTLS), and input that arrives before the answer that it has to wait for. Each
// length, number and time has a limit, named in limits.go.
//
// The server is our own, because the line guard has to stand between TLS and the
// commands, where the libraries have no place for it.
package inbound
