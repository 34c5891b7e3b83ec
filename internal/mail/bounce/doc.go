// Package bounce parses the mail that comes back for sent messages: delivery reports
// (RFC 3464) and the other forms of bounces that mail servers write, complaints of
// readers (RFC 5965), and automatic answers (RFC 3834). It distinguishes a mailbox that
// does not exist from a full one, from a sender who is not trusted, and from an absent
// recipient.
//
// State. None. Package feedback applies the reports and counts them.
//
// Failure. None: a message that the parser does not recognize is one Report of Unknown.
// Anybody can send such mail, so each length has a limit, and a report cannot change a
// delivery that the return address does not name.
package bounce
