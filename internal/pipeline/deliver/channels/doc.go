// Package channels runs the configured channels: it turns their settings into drivers, limits and
// retry schedules, keeps one deliver.Sender a channel, and puts changed settings in force while
// mail leaves.
//
// State. Senders and counters, in memory. Quotas of a day are reserved in the registry.
//
// Failure. A channel whose settings cannot be put in force, such as one whose password cannot be
// read, keeps its former settings or holds its messages. It is tried again every two seconds and
// does not affect other channels.
//
// The server makes one Channels. The dispatch stage hands batches to its senders; the API and the
// status read it.
package channels
