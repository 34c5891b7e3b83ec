// Package feedback processes what comes back about messages that were sent: bounces, complaints, receipts of
// providers and mails to unsubscribe.
//
// State. Processor holds the reports that wait, at most maxWaiting; more block their senders. MailStore keeps the
// newest mails to postmaster and abuse as files. Everything else is in the database.
//
// Failure. Take returns nil when the consequences of a report are durable, and an error when the sender has to
// deliver it again. Each step can be repeated, so a report that arrives twice has the same effect as one.
//
// The inbound mail server and the receipts endpoint of the API call it; package bounce parses the reports.
package feedback
