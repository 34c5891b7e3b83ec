package content

import (
	"bytes"
	"strings"

	"fanfare.dev/fanfare/internal/imap/syntax"
	"fanfare.dev/fanfare/internal/mail/mimetree"
)

// find returns the part that a section names, or nil. The numbers continue in the parts of a message/rfc822.
func find(root *mimetree.Part, path []int) *mimetree.Part {
	at := root
	for i, n := range path {
		ofMessage := i == 0
		if i > 0 && at.IsMessage() {
			at, ofMessage = at.Children[0], true
		}
		switch {
		case at.IsMultipart():
			if n > len(at.Children) {
				return nil
			}
			at = at.Children[n-1]
		case !ofMessage || n != 1: // a message that is not multipart has one part, its body
			return nil
		}
	}
	return at
}

// Section returns the bytes of a section of BODY. The structure can be nil for the whole message.
func Section(root *mimetree.Part, message []byte, s syntax.Section) []byte {
	if len(s.Part) == 0 && s.Of == "" {
		return message
	}
	part := find(root, s.Part)
	if part == nil {
		return nil
	}
	if len(s.Part) == 0 {
		if s.Of == "TEXT" {
			return slice(message, part.Body)
		}
		return header(slice(message, part.Header), s)
	}
	switch s.Of {
	case "":
		return slice(message, part.Body)
	case "MIME":
		return slice(message, part.Header)
	}
	if !part.IsMessage() {
		return nil
	}
	inner := part.Children[0]
	if s.Of == "TEXT" {
		return slice(message, inner.Body)
	}
	return header(slice(message, inner.Header), s)
}

func slice(message []byte, r mimetree.Range) []byte { return message[r.From:r.To] }

// header returns a header, or the selected fields of it with an empty line.
func header(h []byte, s syntax.Section) []byte {
	if s.Of == "HEADER" {
		return h
	}
	out := make([]byte, 0, min(len(h), 1024))
	for field := range mimetree.Fields(h) {
		selected := false
		for _, name := range s.Fields {
			if strings.EqualFold(name, field.Name) {
				selected = true
				break
			}
		}
		if selected == (s.Of == "HEADER.FIELDS") {
			out = append(out, field.Raw...)
		}
	}
	if s.Of == "HEADER.FIELDS" && len(out) > 0 && !bytes.HasSuffix(out, []byte("\n")) {
		out = append(out, "\r\n"...)
	}
	if s.Of == "HEADER.FIELDS" || string(h) == "\r\n" || bytes.HasSuffix(h, []byte("\r\n\r\n")) { // a message without a body need not have the empty line
		out = append(out, "\r\n"...)
	}
	return out
}

// Binary returns the bytes of a section of BINARY without the content transfer encoding.
func Binary(root *mimetree.Part, message []byte, path []int) ([]byte, error) {
	if len(path) == 0 {
		return message, nil
	}
	part := find(root, path)
	if part == nil {
		return nil, nil
	}
	return mimetree.Decode(part, message)
}

// Cut returns the bytes of a partial.
func Cut(data []byte, p *syntax.Partial) []byte {
	if p == nil {
		return data
	}
	from := min(p.Offset, int64(len(data)))
	return data[from : from+min(p.Length, int64(len(data))-from)]
}
