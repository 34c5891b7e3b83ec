// Package channels runs the configured channels: it turns their settings into drivers, limits and
// retry schedules, runs one deliver.Sender per channel, and applies changed settings while mail
// is being sent.
//
// State. Senders and counters, in memory. Quotas of a day are reserved in the registry.
//
// Failure. A channel whose settings cannot be applied, such as one whose password cannot be
// read, keeps its previous settings or holds its messages. The server retries every two seconds,
// and other channels are not affected.
//
// The server creates one Channels. The dispatch stage passes batches to its senders; the API and
// the status read it.
package channels
