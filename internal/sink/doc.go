// Package sink is a mail server, and a receiver of webhooks, that takes
// everything and keeps count. It stands in for a relay and for a provider in the
// demo, in benchmarks and in crash tests, shares the machine with what it
// measures, and so spends as little as it can: one read and one write for a whole
// group of commands of mail.
//
// # State
//
// All in memory: counters, and for each (event, recipient) how often it came,
// under a 64-bit hash (about 30 bytes each; at ten million pairs the chance that
// any two share a hash is below one in 300,000). With Record, one line per
// accepted recipient goes to a writer too.
//
// # Failure
//
// The sink fails on purpose where Inject, Above or a HostRule says so. A message
// counts as accepted from the moment its final dot, or its request, was read and
// what Delay asks for was waited, also where the connection is then dropped before
// the reply: a real relay may have queued it. Of what does not fit its limits it
// refuses the one line or message and goes on.
package sink
