// Package bench runs the experiments of the project against a real server: the
// same binary as a child process with its own data directory, driven through the
// public API, with a sink in another process to count what came. Only the
// workloads of conditions (workload.go) and of formatting (formpart.go) meet one
// part alone, in a process of their own.
//
// # State
//
// Nothing outlives a run but the records, which are appended to a file where one
// is named. Every run makes a folder below the working directory, so that the
// server writes to the disk that is to be measured, and removes it afterwards.
//
// # Failure
//
// A rate is never judged. What is judged holds on any machine: nothing lost,
// nothing twice, traces that agree with what was sent, hits that agree with
// cel-go. Where one of these is not so, the run ends with a Wrong, after its record
// is written. Children are ended in any case, and only those that were started here.
//
// # Limits
//
// A rate stands beside the rate of the same work without a product, measured in
// the same run: a raw SMTP sender to the same kind of sink, a bare HTTP handler
// that keeps what it gets. The ratio of the two is what can be compared between
// machines.
package bench
