// Package chaos tests that a cluster keeps its promises under random faults. Its test runs real processes: nine nodes (two that can
// lead, three that deliver, two that match, two for the API), a PostgreSQL server with a synchronous standby, and three NATS servers.
// Clients publish events, send messages, and change, end and erase subscriptions through random nodes. They repeat a request with the
// same ids until a node accepts it.
//
// If the test runs as root, it runs itself again in namespaces of its own. Each machine then has a network namespace, an address of
// 198.18.0.0/24 and a small disk. Otherwise all processes use 127.0.0.1 and directories, and some faults are left out; the test says so.
// In a run of less than ten minutes the NATS servers are embedded in three of the nodes, otherwise each has its own process.
//
// Meanwhile a schedule of faults runs, which follows from a seed:
//
//   - Nodes, NATS servers and PostgreSQL are killed, stopped, and frozen (SIGSTOP). The primary of PostgreSQL is killed once for good,
//     and its standby is promoted.
//   - Links lose their packets in one or both directions, are reset, or are slow. Each link of a node passes through a proxy. A whole
//     machine loses its network.
//   - Disks of nodes, NATS servers and PostgreSQL are filled and freed. A disk of a node that has less space than disk_floor refuses
//     events.
//   - Clocks are stepped by 2 s: those of nodes by internal/clock, that of PostgreSQL by libfaketime if this Debian package is
//     installed.
//   - The relay closes all its connections, or does not reply.
//
// The relay is part of the test. It stores the time at which the body of each message began to arrive, and the node that sent it. The
// judge computes the expected result from what the clients sent, without code of the server, and compares it with what arrived:
//
//   - Each matching event reaches each subscriber, and no other events do.
//   - A crossing of a level is reported once.
//   - Each event is in exactly one digest of each subscriber.
//   - A message is repeated at most once for each connection that a fault interrupted. If the test is isolated, this is counted for
//     each node. Messages that a node finished after it had been frozen for longer than the lease are counted separately.
//   - No message begins to arrive after the end of a subscription was acknowledged or an erasure was reported, except at
//     most one for each connection of a node that was frozen.
//
// A request without a response may be carried out later: a frozen node can forward it when it continues. The clients
// therefore do not change a subscription again after such a request; another person takes its place.
//
// Environment variables: CHAOS_SEED repeats a schedule, CHAOS_MINUTES is the duration of the faults (default 3), CHAOS_LOGS is a
// directory for the logs of the processes, and CHAOS_ISOLATED=no prevents the namespaces. The nodes use the durability fsync: with
// relaxed, PostgreSQL does not wait for its standby, and a promotion loses data.
//
// The test needs the build tag crashsteps, because FANFARE_FAULT=lease-without-epoch makes the nodes keep an expired lease and
// write under it. The test must then fail:
//
//	FANFARE_FAULT=lease-without-epoch go test -tags crashsteps -run UnderRandomFaults ./internal/test/chaos
package chaos
