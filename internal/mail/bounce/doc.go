// Package returns reads what comes back of messages that have left: reports of
// delivery (RFC 3464) and the forms that mail servers use in their place,
// complaints of readers (RFC 5965), and what programs answer by themselves
// (RFC 3834). It tells a mailbox that does not exist from one that is full, from
// a sender who is not trusted, and from somebody who is on holiday.
//
// State. None: what is read is all that counts. What follows from it, and what
// is counted of it, is app's.
//
// Failure. There is none: a message that says nothing which is known is one
// Report of Unknown. What is read was written by strangers, so that each length
// has a limit, and nothing in a report is believed of a delivery which the
// return address does not name.
package bounce
