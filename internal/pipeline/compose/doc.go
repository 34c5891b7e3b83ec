// Package compose prepares the messages of an event: it compiles the template, encodes
// attachments once for all recipients, and sets sender, return address and links.
//
// It keeps compiled template versions and encoded attachments in memory and stores nothing.
// The dispatch stage, the API of transactional messages and the preview call it, so that all
// three write the same bytes. The text itself is written by package render.
package compose
