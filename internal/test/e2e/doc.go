// Package e2e holds the tests that drive the real program: the binary is built,
// started as its users start it, spoken to by its command line and its API, and
// judged by what arrives at the capture server.
//
// State. Each server has a data directory, a port and a log of its own, and ends
// with its test.
//
// Failure. A test that needs a full disk mounts a small one for the server
// alone, in a mount namespace; where the machine allows neither root nor user
// namespaces the test fails and says so.
package e2e
