// Package docexamples has the tests that run the examples of the documents: each
// page that shows commands, documents or templates is followed from top to bottom
// with the real program, in a directory of its own, against a server and a capture
// server of its own. Each template that an example shows is sent to recipients of
// every kind, and rendered for a thousand random ones.
//
// State. A page starts from testdata/base; testdata/NAME adds what the page takes
// for granted: files, a document, and setup.sh.
//
// Failure. An example that fails is named with its page, line and command. Blocks
// that are not run stand in the list of exceptions, each with its reason; an entry
// that fits no block fails the test as well.
package docexamples
