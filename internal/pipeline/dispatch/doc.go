// Package dispatch is the stage between the bus and the senders of channels: it takes a batch,
// which only names recipients, reads their current data, writes their messages and hands them to
// a deliver.Sender.
//
// State. One loop for each channel and lane, with the batches that it has read ahead; the
// deliveries that are in work, in Claims; and counts of template failures. All of it is in memory.
//
// Failure. A batch whose loading fails is given back and comes again; after fanfare.MaxFailures
// it is parked. A batch may come twice: deliveries that are settled, or in work in another batch,
// are left out. A broadcast whose template fails for most of its first recipients is paused.
//
// The server makes one Stage; package channels starts its loops.
package dispatch
