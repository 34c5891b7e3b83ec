// Package content writes the items of FETCH that come from the bytes of a message: BODYSTRUCTURE, BODY and ENVELOPE (RFC 9051, section 7.5.2), and
// sections of BODY and BINARY (sections 6.4.5.1 and 6.4.5.2).
//
// State. None. The structure of a message is a tree of package mimetree.
//
// Failure. A section that the message does not have is empty. Binary fails with mimetree.ErrUnknownEncoding.
package content
