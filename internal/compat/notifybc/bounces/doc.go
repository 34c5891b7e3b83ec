// Package bounces has the bounces of the NotifyBC API: a record for each address to which mail could not be delivered, with a count and
// the newest messages.
//
// # State and failure
//
// The records are in the control database. A second record for each address leads from the address to the record, so that a bounce is
// counted without a search. [Bounces.Count] ignores a bounce that it has counted already, because mail servers repeat their reports.
// The API ends the subscriptions of an address that has too many bounces, and then calls [Bounces.Close]. Suppressions, which decide whether
// mail is sent, are those of the service and do not depend on the records.
package bounces
