// Package submission sends messages that the owners of mailboxes submit (RFC 6409): it checks and completes their headers, limits how many an
// account sends, passes those for other servers on as deliveries of the mail channel, and reports the failures to the sender (RFC 3464).
//
// State. A submission to other servers is a record of the account in package mailbox, from before its deliveries exist until the account or the
// client removes it; it has the state of each recipient. Deliveries, retries and limits are those of the pipeline. The counters of the limits are
// in memory.
//
// Failure. Send returns after the deliveries are durable. A record without deliveries is removed after a restart: its sender got no success, and
// tries again. A report is stored before the record says so; after a kill between both, the sender gets it twice.
//
// The SMTP server for submission and JMAP call the package.
package submission
