// Command fanfare is the one binary: the server and everything that talks to it.
//
// Each command has a file of its own. A command turns flags into calls of the API
// (package client) or of a package under internal, and answers into text.
//
// Exit codes: 0 done, 1 failed, 2 done but for some members, 3 the server
// cannot be reached, 4 the server refused the key.
package main
