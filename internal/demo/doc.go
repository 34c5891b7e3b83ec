// Package demo demonstrates Fanfare with real data: a complete server in this process, generated
// people with subscriptions, the events of one of the examples, and a capture server that accepts
// and counts all mail.
//
// The data directory must be empty at the start. It is removed at the end unless the user named
// it. The same seed generates the same people.
//
// Run compares the number of sent mails with the count of the capture server. If they differ, or
// anything was refused, Run still prints the report, and then returns an error.
package demo
