// Package inflate decompresses DEFLATE (RFC 1951) for connections (RFC 4978).
//
// The reader of package compress/flate returns the data of a block when it has read the beginning of the next one. A client that flushes with
// Z_PARTIAL_FLUSH does not always send that much, and waits for a response. This reader needs no bits behind the end of a block.
//
// State. A Reader has the last 32 KiB of its output, and the codes of the current block.
//
// Failure. Read returns ErrCorrupt for data that are not valid, or the error of the source. It keeps the error.
package inflate
