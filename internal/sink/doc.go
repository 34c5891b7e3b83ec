// Package sink is a server for SMTP and webhooks that accepts and counts everything. It
// stands in for a relay and a provider in demo, benchmarks, and tests. It shares the
// machine with what it measures, and therefore uses few resources: one read and one write
// for a group of SMTP commands.
//
// # State
//
// All in memory: counters, and the number of receipts of each (event, recipient) under a
// 64-bit hash (about 30 bytes each; with ten million pairs, the probability that any two
// share a hash is below one in 300,000). With Config.Record, one line per accepted
// recipient is also written.
//
// # Failure
//
// The sink fails on purpose as Inject, Above and HostRule configure. A message counts as
// accepted when its final dot, or its request, was read and the configured delay has
// passed, even if the connection is then closed before the reply: a real relay may have
// queued it. A line or message beyond the limits is refused, and the connection continues.
package sink
