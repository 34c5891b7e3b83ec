// Package smtp is the driver for SMTP (RFC 5321). Its connections stay open, and it sends
// the body of one message together with the envelope of the next one in one write (RFC
// 2920, section 3.1). This halves the packets and wake-ups per message compared with plain
// pipelining. Package channels creates the drivers, and package deliver calls Serve.
//
// The path of a message: session.go takes it from the queue, transaction.go adds recipients
// with the same content, envelope.go sends the envelope and reads the replies, session.go
// writes the body and reports the outcome. commands.go and reply.go encode and parse;
// dial.go opens connections; pipeline_mode.go remembers which pipelining the peer supports.
//
// # State
//
// A Driver is one next hop. Between connections it remembers only the pipelining mode of
// the peer, and its reason. A connection holds at most two transactions: the one whose body
// is being sent, and the one whose envelope is sent with that body. If the channel allows
// it, a transaction has several recipients with the same content, and the connection
// remembers how many the peer accepts. Nothing is stored.
//
// # Failure
//
// The body of a message is written only after its own envelope was answered with 354, after
// the outcome of the previous message is recorded, and after the queue has released the
// message. Therefore, a broken connection leaves at most one transaction with an unknown
// result, whose messages are reported as Lost; every other message is returned. Each
// recipient has its own outcome: a refused RCPT is the outcome of that recipient, and the
// reply to the body that of the others. If peer and client may disagree about the state of
// the session, the connection is closed: sending a body under the envelope of another
// message is the one mistake that cannot be undone.
package smtp
