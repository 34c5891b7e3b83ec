// Package dispatch is the stage between the bus and the senders of channels: it takes a batch,
// which only contains the ids of recipients, reads their current data, writes their messages and
// passes them to a deliver.Sender.
//
// State. One loop for each channel and lane, with the batches that it has read ahead; the
// deliveries that are in work, in Claims; and counts of template failures. All of it is in memory.
//
// Failure. A batch that cannot be loaded is returned and delivered again; after
// fanfare.MaxFailures it is parked. A batch may be delivered twice: deliveries that are settled,
// or being processed in another batch, are skipped. A broadcast whose template fails for most of
// its first recipients is paused.
//
// The server creates one Stage; package channels starts its loops.
package dispatch
