// Package mimetree parses a message into a tree of its parts with their places in the message (RFC 5322, RFC 2045 to 2047, RFC 2231). IMAP and
// JMAP answer BODYSTRUCTURE, ENVELOPE and parts of a message from the tree, without parsing the message again: a tree has a compact form that
// is stored beside the message.
//
// State. None. A tree refers to the message by offsets and holds no bytes of it besides the values of its fields.
//
// Failure. Parse never fails: each sequence of bytes is a message with at least one part. If RFCs leave a choice, and for broken messages, the
// result is the same as in Dovecot 2.3. Depth, number of parts, boundaries and fields are limited, and the time is linear in the length.
package mimetree
