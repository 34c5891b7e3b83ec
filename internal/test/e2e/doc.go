// Package e2e holds the end-to-end tests. They build the real program, start it as users do, use its command line and its
// API, and check the messages that arrive at the capture server.
//
// Each server has its own data directory, port and log, and stops at the end of its test. A test that needs a full disk
// mounts a small file system for the server in a mount namespace; if the machine allows neither root nor user namespaces,
// the test fails with that reason.
package e2e
