// Package imap serves mailboxes by IMAP4rev2 (RFC 9051) and IMAP4rev1 (RFC 3501). docs/reference/imap.md lists the extensions.
//
// State. Each connection is a session with one goroutine, which reads commands and executes them one after the other. A session that has
// selected a mailbox keeps the UIDs that its client knows, in the order of their sequence numbers; the messages themselves are in snapshots that
// all sessions of the mailbox share (package view). Changes of other sessions reach the client at the end of a command, or during IDLE from the
// goroutine of the change. Headers that were searched are in a cache that all sessions share. Everything that is durable is in package mailbox.
//
// Failure. A command that fails changes nothing, and its tagged response has a response code (RFC 5530) and says what to do. If the database
// cannot be reached, commands answer NO [UNAVAILABLE] and the session stays. Each length, number and time has a limit, in Limits and in
// limits.go. Before a client has logged in, it can send only short lines, and failures are answered slowly.
package imap
