// Package matching holds the experiments about conditions: B1 to B7 and B9 measure
// the index alone, in a process of its own; B8, B10, C1 and C2 measure a server with
// many price alerts.
//
// A workload makes subscriptions and events from their numbers. Its matches are
// compared with cel-go for a sample of the subscriptions and, where an index of
// slices can know them, with that index. Each rate is shown with the rate of the same
// work without conditions. Package bench lists and calls the experiments.
package matching
