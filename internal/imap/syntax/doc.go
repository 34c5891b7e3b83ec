// Package syntax reads the commands and writes the responses of IMAP4rev2 (RFC 9051) and IMAP4rev1 (RFC 3501), with the extensions
// that docs/reference/imap.md lists. It turns the bytes of one command with its literals into a Command, and values into bytes.
//
// State. None: a decoder lives as long as one command. The server asks Literal whether more bytes belong to a command.
//
// Failure. Parse returns *Error, whose text is for the tagged BAD response. The server bounds the length of a command before it
// calls Parse; the depth of nested keys of SEARCH and the number of elements in lists are bounded here.
package syntax
