package mimetree

import "strings"

// Limits of a tree. Parts beyond them are a part of the body that holds them.
const (
	maxDepth         = 100
	maxParts         = 10_000
	maxBoundaryBytes = 80      // RFC 2046 has 70
	maxHeaderBytes   = 1 << 20 // of one header; fields after them are not used
	maxValueBytes    = 64 << 10
	maxAddresses     = 10_000 // of one field
	maxParams        = 200    // of one field
)

// A Range is a part of the message.
type Range struct{ From, To int64 }

// Len returns the number of its bytes.
func (r Range) Len() int64 { return r.To - r.From }

// A Part is a message or a part of one. Its strings are as in the message, without the line ends of folded fields; NUL is replaced by U+FFFD.
type Part struct {
	Header Range // with the empty line after it
	Body   Range
	Lines  int64 // of the body: the number of its line ends

	Type, Subtype     string // "text" and "plain" without a Content-Type field
	Params            []Param
	ID                string
	Description       string
	Encoding          string // of Content-Transfer-Encoding; "" is 7bit
	MD5               string
	Disposition       string
	DispositionParams []Param
	Language          []string
	Location          string
	Present           Presence // which fields exist, because a field can be empty

	Envelope *Envelope // of the message, and of the child of message/rfc822 and message/global
	// Children are the parts of multipart. A message/rfc822 or message/global has one child, the message in it; it has none, and so has a
	// multipart, beyond the limits of depth and number.
	Children []*Part
}

// A Param is a parameter of a field. A value that was split or encoded as in RFC 2231 is joined, and remains encoded; its name then ends in *.
type Param struct{ Name, Value string }

// An Envelope has the fields that IMAP's ENVELOPE shows (RFC 9051, section 7.5.2). Encoded words (RFC 2047) are not decoded.
type Envelope struct {
	Date, Subject         string
	From, Sender, ReplyTo []Address // Sender and ReplyTo are From if they are missing
	To, Cc, Bcc           []Address
	InReplyTo, MessageID  string
	Present               Presence
}

// An Address is a mailbox, or the begin or the end of a group.
type Address struct {
	Name    string // of the person; "" if there is none
	Route   string // obsolete source route
	Mailbox string // of a group's begin: the name of the group
	Host    string
	Group   Group
}

// Group says whether an Address is the begin or the end of a group. IMAP writes NIL for Host then, and for Mailbox at the end.
type Group uint8

// The kinds of addresses.
const (
	NoGroup Group = iota
	GroupBegin
	GroupEnd
)

// Presence is a set of fields.
type Presence uint16

// The fields that can exist and be empty.
const (
	HasID Presence = 1 << iota
	HasDescription
	HasMD5
	HasDisposition
	HasLocation
	HasContentType
	HasDate
	HasSubject
	HasInReplyTo
	HasMessageID
)

// Has reports whether a set has all of some fields.
func (p Presence) Has(fields Presence) bool { return p&fields == fields }

// IsMultipart reports whether the part consists of parts.
func (p *Part) IsMultipart() bool { return strings.EqualFold(p.Type, "multipart") && p.Subtype != "" }

// IsMessage reports whether the part is a message whose parts are in the tree.
func (p *Part) IsMessage() bool {
	return strings.EqualFold(p.Type, "message") && (strings.EqualFold(p.Subtype, "rfc822") || strings.EqualFold(p.Subtype, "global")) && len(p.Children) == 1
}

// Param returns a parameter of Content-Type, or "".
func (p *Part) Param(name string) string {
	for _, param := range p.Params {
		if strings.EqualFold(param.Name, name) {
			return param.Value
		}
	}
	return ""
}

func (p *Part) hasParam(name string) bool {
	for _, param := range p.Params {
		if strings.EqualFold(param.Name, name) {
			return true
		}
	}
	return false
}
