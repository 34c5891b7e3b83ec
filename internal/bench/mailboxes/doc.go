// Package mailboxes has the experiments with mailboxes: deliveries over LMTP (J1, J2 and J3), users of IMAP (J4) and of JMAP (J5), and a broadcast into
// inboxes (J6). Its clients know only as much of the protocols as they need, and share no code with the server.
package mailboxes
