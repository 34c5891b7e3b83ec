// Package nodes holds the experiments with a cluster: the nodes are processes of the
// same binary on this machine, which share a PostgreSQL and a NATS server.
//
// Each experiment is a function that gets the environment of a run and fills in a
// record. Package bench lists and calls them.
//
//	broadcast.go   a large broadcast through one server and through nodes, and what it costs each process
//	slow_relay.go  a next hop that answers slowly: the rate by the number of nodes
//	shared_rate.go a rate that nodes share, while they join and leave
//	nats.go        the process with the NATS server
//
// All processes share the cores of one machine. A rate in these experiments therefore
// does not show how a cluster scales unless the next hop is slow; the CPU time of each
// process does not depend on this.
package nodes
