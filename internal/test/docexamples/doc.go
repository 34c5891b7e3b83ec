// Package docexamples tests the examples of the documentation. It follows each page with commands, documents or templates
// from top to bottom with the real program, in a separate directory, with a server and a capture server. It sends each
// template of an example to recipients of every kind, and renders it for a thousand random ones.
//
// A page starts with the files of testdata/base; testdata/NAME adds what the page assumes: files, a document, and
// setup.sh.
//
// A failure names the page, line and command of the example. Blocks that are not run are in the list of exceptions with
// their reasons; an entry without a matching block is a failure, too.
package docexamples
