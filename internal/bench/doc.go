// Package bench runs the experiments of the project against a real server: the
// same binary as a child process with a data directory of its own, used through
// the public API, and a sink in another process that counts what came.
//
// This package lists the experiments and the suites, runs them, and compares two
// binaries in pairs. Its subpackages hold the rest:
//
//   - delivery, intake, matching, nodes, pipeline and rendering: the experiments by topic
//   - harness: server, sink and other processes of a run, and the clocks
//   - loadgen: people, subscriptions, documents and requests that a run sends
//   - rawlimit: the same work without a product, measured in the same run
//   - report: records, and the table, HTML page and Markdown tables made of them
//
// # State
//
// Only the records outlive a run. They are appended to a file if one is named.
// Every run makes a folder below the working directory, so that the server writes
// to the disk that is to be measured, and removes it afterwards.
//
// # Failure
//
// A rate is never judged. A run fails if something is not as it must be on any
// machine: a message lost or sent twice, a trace that does not agree with what was
// sent, a match that does not agree with cel-go. The run then returns a CheckError
// after its record is written. Bench ends the processes that it started, and no
// others.
//
// # Limits
//
// A rate is shown with its limit: the rate of the same work without a product,
// measured in the same run. The ratio of the two can be compared between machines.
package bench
