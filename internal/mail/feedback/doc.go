// Package feedback processes the responses to sent messages: bounces, complaints, receipts of providers and
// unsubscribe emails.
//
// State. Processor queues at most maxWaiting reports; the senders of further reports block. MailStore stores the
// newest messages to postmaster and abuse as files. Everything else is in the database.
//
// Failure. Take returns nil when the consequences of a report are durable, and an error when the sender must
// deliver it again. Each step can be repeated, so a report that arrives twice has the same effect as one.
//
// The inbound mail server and the receipts endpoint of the API call it; package bounce parses the reports.
package feedback
