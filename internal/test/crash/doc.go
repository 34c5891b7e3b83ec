// Package crash tests that the promises of Fanfare survive kill -9. Its tests run the real binary, built with the tag
// crashsteps, against a capture server in another process. They kill the binary at each durable step of an event, and at
// random moments of a large broadcast. Meanwhile they add, change and end subscriptions, publish small events, and send
// messages to named people. Then they compare the messages that arrived with the expected ones.
//
// A Timeline of each subscription has the changes that a client sent, with the times at which each was sent and
// acknowledged. The file of the capture server has a line for each message, written before the message was answered. Judge
// uses only these two. Reconcile compares the counts of a broadcast with the file.
//
// Another test covers bounces: it kills the inbound server after it has read a bounce and before it answers, and expects
// that each bounce counts once.
//
// A further test has a filter, a worker that is asked about recipients: it kills the server before and after the answers are
// stored.
//
// The test of NotifyBC kills the server before and after a notification of that API becomes an event, and before its outcome is
// stored.
//
// The test of mailboxes kills the server at each durable step of internal/mailbox while mail arrives over LMTP, mailboxes are
// changed over IMAP and JMAP, and broadcasts are stored, recalled and removed. Each user of a mailbox compares what it finds
// after a kill with what was acknowledged to it. A request without an answer was carried out, or it was not. Nothing else may
// be different: the bytes of a message are known by its UID, no UID is used twice, and no modseq decreases.
//
// If a kill interrupts the answer to a change or an event, the test repeats the request until it is acknowledged. Between
// sending and acknowledgement both outcomes are correct; before and after, only one is.
//
// The same tests run on PostgreSQL. They kill, stop, disconnect and silence the database while the server keeps running,
// and kill both together.
//
// Environment variables make the tests larger: CRASH_PEOPLE (subscribers of the large broadcast), CRASH_KILLS (random
// kills for each durability), CRASH_MAILBOX_KILLS (random kills of the test of mailboxes),
// CRASH_STARTS (starts that lose their database) and CRASH_SEED.
package crash
