// Package inbound is the mail server of three kinds of listeners. It speaks SMTP (RFC 5321) with SIZE, 8BITMIME, SMTPUTF8, PIPELINING,
// STARTTLS and enhanced status codes.
//
// Returns accepts bounces and unsubscribe emails, only for its own domains: for addresses that were signed when a message was sent, for
// postmaster and for abuse. LMTP (RFC 2033) accepts messages from a mail server for mailboxes, and answers for each recipient. Submission
// (RFC 6409) accepts messages for mailboxes from their owners, who log in with AUTH over TLS and may use only their own address; it also has
// DSN (RFC 3461). Both have CHUNKING (RFC 3030). Package recipients finds the mailboxes of an address. All refuse other recipients at RCPT. Only Submission passes mail on to other servers,
// with package submission, for accounts that may send to them.
//
// State. Each session keeps its transaction in memory. The server answers a message with 250 after Options.Take or Mailboxes.Deliver has
// returned, when the consequences are durable. The peer keeps the message until then.
//
// Failure. The server answers 451 if it cannot process a message now, and the peer tries again. If a submission fails for some of its
// recipients, the sender gets a report in the own mailbox. The server ends the connection if two readers could understand the input
// differently: a line that does not end in CR LF (in commands and in messages, before and after STARTTLS), and input that arrives before the
// reply that it must wait for. Each length, number and time has a limit, named in server.go.
//
// Fanfare has its own server because lines must be checked between TLS and the commands, and libraries have no hook there. Package server
// starts it; package feedback processes returns.
package inbound
