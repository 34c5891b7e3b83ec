// Package mime writes the parts of a mail as bytes: header lines (RFC 5322, RFC 2047),
// bodies in 7bit or quoted-printable (RFC 2045), and attached and embedded files (RFC
// 2183, RFC 2231, RFC 2387). Package render assembles messages from them.
//
// A [Body] encodes once what many recipients share and joins the recipient's own text to
// it, so that a message costs little more than a copy. This is why the package does not
// use a library that encodes each message from the beginning.
//
// State: a [Chunk] remembers its encoded form. A Body belongs to one goroutine.
// [EncodedFiles] never change.
//
// Failure: a value that may not stand in a header is refused with a *fanfare.Error whose
// pointer names the setting.
package mime
