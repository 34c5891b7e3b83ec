// Package peers tests mail delivery with real mail servers: Postfix, its smtp-sink, Exim and OpenSMTPD, as Debian ships
// them. The tests have the build tag peers, because they need these programs and root; `make test-peers` installs the
// programs and asks for root. dkimpy verifies the signatures of the messages that the servers stored.
//
// Each server runs in the foreground as a child of its test, with its own configuration, spool, mailboxes and ports below
// the test's directory. The spool of OpenSMTPD has a fixed place, so it gets its own in a mount namespace. Every server
// delivers messages, with their envelopes, to files, so that a test checks what the server did with a message and not only
// its reply.
//
// Clients of IMAP open the mailboxes of the server: mbsync, offlineimap, interimap, neomutt, and three libraries of Python.
// The tests compare what these clients left with an export or over an IMAP connection of their own.
//
// A test fails if its server is missing or does not start; the failure contains the log. No test is skipped, and no
// service of the machine is changed.
package peers
