// Package compose writes messages (RFC 5322, RFC 2045 to 2047, RFC 2231) from the fields and body parts that a client describes.
//
// State. None.
//
// Failure. The caller has checked names and values of fields; a field that holds a line end is written as one line, so that no value can
// add a field. Each line has at most 998 bytes. The message has CR LF line ends.
package compose
