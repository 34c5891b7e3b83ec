// Package harness runs the processes of an experiment and measures them: a server
// under test, a sink, and parts that run in a process of their own.
//
// Env is the environment of one run: its options, its folder and its processes.
// Server is a running fanfare serve with a client for its API, Sink is a running
// capture server, and WindowUsage is what both took while a clock ran. The clocks
// are in clock.go: they stop when a read through the API shows what must be durable.
//
// The packages with experiments call this package; it knows none of them.
//
// # Failure
//
// A process that ends early, or a run in which nothing happens for a minute, is an
// error with the last lines that the process has logged. Env.Close ends all
// processes that Env has started, in reverse order, and removes the folder.
package harness
