// Package chaos tests that a cluster keeps its promises under random faults. Its test runs real processes: six nodes, a
// PostgreSQL server with a synchronous standby, and a NATS server. Clients publish events, send messages, and change, end
// and erase subscriptions through random nodes. They repeat a request with the same ids until a node accepts it.
//
// Meanwhile a schedule of faults runs, which follows from a seed: nodes are killed, stopped, and frozen (SIGSTOP), links
// are cut in one or both directions or slowed down, the relay closes all its connections, and the primary of PostgreSQL is
// killed once and its standby promoted. Each link of a node passes through a Proxy.
//
// The relay is part of the test. It stores the time at which the body of each message began to arrive. The judge computes
// the expected result from what the clients sent, without code of the server, and compares it with what arrived:
//
//   - Each matching event reaches each subscriber, and no other events do.
//   - A crossing of a level is reported once.
//   - Each event is in exactly one digest of each subscriber.
//   - A message is repeated at most once for each connection that a fault interrupted.
//   - No message begins to arrive after the end of a subscription was acknowledged or an erasure was reported, except at
//     most one for each connection of a node that was frozen.
//
// A request without a response may be carried out later: a frozen node can forward it when it continues. The clients
// therefore do not change a subscription again after such a request.
//
// Environment variables: CHAOS_SEED repeats a schedule, CHAOS_MINUTES is the duration of the faults (default 3), and
// CHAOS_LOGS is a directory for the logs of the nodes. The nodes use the durability fsync: with relaxed, PostgreSQL does not
// wait for its standby, and a promotion loses data.
//
// The test needs the build tag crashsteps, because FANFARE_FAULT=lease-without-epoch makes the nodes keep an expired lease and
// write under it. The test must then fail:
//
//	FANFARE_FAULT=lease-without-epoch go test -tags crashsteps -run UnderRandomFaults ./internal/test/chaos
package chaos
