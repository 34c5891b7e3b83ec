// Package delivery holds the experiments that send messages and measure how fast
// and how reliably they leave: broadcasts, urgent messages, providers with limits,
// failing destinations, multicast and bounces.
//
// Each experiment is a function that gets the environment of a run and fills in a
// record. Package bench lists and calls them.
//
// A clock of this package stops when the last outcome is durable, unless the record
// says that a time is one of the sink.
package delivery
