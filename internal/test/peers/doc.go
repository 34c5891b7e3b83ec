// Package peers holds the tests that send real mail to real mail servers:
// Postfix, its smtp-sink, Exim and OpenSMTPD, as Debian ships them. They have the
// build tag peers, since they need those programs and root; `make test-peers`
// installs the one and asks for the other. dkimpy verifies the signatures of
// the messages that the servers stored.
//
// State. Each server runs in the foreground as a child of its test, with a
// configuration, a spool, mailboxes and ports of its own below the test's
// directory; OpenSMTPD, whose spool has a fixed place, gets one of its own in a
// mount namespace. Every server delivers what it took to files that tell the
// envelope. So a test sees what a peer did with a message, and not only what the
// peer said.
//
// Failure. A server that does not start fails its test with its log; a server
// that is missing fails it too. Nothing is left out quietly, and no service of
// the machine is touched.
package peers
