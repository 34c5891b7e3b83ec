// Package smtp is the way out by SMTP (RFC 5321): a client that keeps its
// connections and sends the body of one message together with the envelope of
// the next in one write (RFC 2920, section 3.1). That halves the packets and
// the wake-ups of a message compared with plain pipelining.
//
// # State
//
// A Driver is one next hop. Between connections it remembers one thing: how
// closely commands may be grouped for this peer, and why. A connection holds at
// most two messages: the one whose body is on its way, and the one whose
// envelope travels with it. Where the channel allows it, each may be several that
// are one message: then there is one body for all recipients of the transaction,
// and a connection remembers how many the peer takes. Nothing is kept on disk.
//
// # Failure
//
// The body of a message is written only after 354 was read for its own envelope,
// after the outcome of the message before it is kept, and after the queue has
// released it. So a connection that breaks leaves at most one message whose fate
// is not known, and its messages are reported as Lost; every other message it held
// is returned. Of several recipients each has its own outcome: who was refused was
// refused, and the reply to the body is for the others. A peer and a client that disagree about where they are in the
// conversation never go on: the connection is closed, since a body under
// another message's envelope is the one mistake that cannot be undone.
package smtp
