// Package bounce parses the reports that come back about sent messages: delivery reports (RFC 3464) and the forms that
// mail servers use instead, complaints (RFC 5965), automatic replies (RFC 3834), and receipts of providers, which it also
// verifies. It distinguishes a mailbox that does not exist from one that is full, from a sender who is not trusted, and
// from a recipient who is on holiday.
//
// State. None. Package feedback applies the reports.
//
// Failure. A message without known content is one Report of Unknown. The input is untrusted, so each length has a
// limit, and a report counts only for the delivery that the return address identifies.
package bounce
