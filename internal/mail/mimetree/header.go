package mimetree

import (
	"bytes"
	"iter"
	"strings"
)

// A Field is a field of a header.
type Field struct {
	Name  string // as written; of a line without a colon, the line
	Value []byte // after the colon, folded, without the last line end
	Raw   []byte // all of it with its line ends
}

// Fields returns the fields of a header up to its empty line.
func Fields(header []byte) iter.Seq[Field] {
	return func(yield func(Field) bool) {
		for len(header) > 0 {
			f, n := cutField(header)
			if n == 0 || !yield(Field{string(f.name), f.value, header[:n:n]}) {
				return
			}
			header = header[n:]
		}
	}
}

// field is a field whose name and value are parts of the header.
type field struct{ name, value []byte }

// cutField returns the first field and its length; 0 at an empty line.
func cutField(header []byte) (f field, length int) {
	for {
		n := bytes.IndexByte(header[length:], '\n')
		if n < 0 {
			length = len(header)
			break
		}
		if first := length == 0; first && (n == 0 || n == 1 && header[0] == '\r') {
			return field{}, 0
		}
		if length += n + 1; length == len(header) || header[length] != ' ' && header[length] != '\t' {
			break
		}
	}
	text := header[:beforeLineEnd(header, 0, length)]
	name, value, ok := bytes.Cut(text, []byte(":"))
	if lf := bytes.IndexByte(name, '\n'); !ok || lf >= 0 { // a colon in a later line does not end the name
		first, _, _ := bytes.Cut(text, []byte("\n"))
		return field{name: bytes.TrimSuffix(first, []byte("\r"))}, length
	}
	return field{bytes.TrimRight(name, " \t"), value}, length
}

// header parses the header of the innermost part. It ends with an empty line; at a line that is the boundary of an outer part (cut), also if an
// empty line is before it; or at the end of the message.
func (p *parser) header(from int) (end int, cut bool) {
	index := len(p.stack) - 1
	top := &p.stack[index]
	part := top.part
	at := from
	var c content
	for at < len(p.message) {
		rest := p.message[at:]
		if cut = p.isBoundaryAbove(index, at); cut {
			break
		}
		f, n := cutField(rest)
		if n == 0 {
			at += bytes.IndexByte(rest, '\n') + 1
			c.finish(top, p.parent())
			if top.marker != nil && p.isShallow() {
				p.boundaries = append(p.boundaries, boundary{index, top.marker})
			}
			return at, p.isBoundaryAbove(index, at)
		}
		if at-from < maxHeaderBytes && len(f.value) <= maxValueBytes {
			c.add(f, part)
		}
		at += n
	}
	c.finish(top, p.parent())
	return at, cut
}

// isBoundaryAbove reports whether a line is a boundary of a part that holds another one.
func (p *parser) isBoundaryAbove(index, at int) bool {
	if len(p.boundaries) == 0 || !bytes.HasPrefix(p.message[at:], []byte("--")) {
		return false
	}
	found, _ := p.boundaryAt(at)
	return found >= 0 && p.boundaries[found].owner != index
}

// isShallow reports whether the innermost part may hold others.
func (p *parser) isShallow() bool { return len(p.stack) < maxDepth && p.parts < maxParts }

// parent returns the part that holds the innermost one.
func (p *parser) parent() *openPart {
	if len(p.stack) < 2 {
		return nil
	}
	return &p.stack[len(p.stack)-2]
}

// content collects the Content fields of a header.
type content struct {
	part Part // only its Content fields
	mime bool
}

func (c *content) add(f field, to *Part) {
	if len(f.name) < 2 {
		return
	}
	switch f.name[0] | 0x20 {
	case 'c':
		if len(f.name) > 8 && strings.EqualFold(string(f.name[:8]), "Content-") {
			c.addContent(f.name[8:], f.value)
			return
		}
	case 'm':
		c.mime = c.mime || strings.EqualFold(string(f.name), "MIME-Version")
	}
	if to.Envelope != nil {
		to.Envelope.add(f)
	}
}

func (c *content) addContent(name, value []byte) {
	text := func(has Presence, to *string) {
		if !c.part.Present.Has(has) {
			*to = unfolded(value)
			c.part.Present |= has
		}
	}
	var lower [18]byte
	switch string(lowered(name, lower[:])) {
	case "type":
		c.mime = true
		if !c.part.Present.Has(HasContentType) {
			c.part.Present |= HasContentType
			c.part.Type, c.part.Subtype, c.part.Params = contentType(structured(value))
		}
	case "transfer-encoding":
		if c.part.Encoding == "" {
			c.part.Encoding = encodingName(structured(value))
		}
	case "id":
		text(HasID, &c.part.ID)
	case "md5":
		text(HasMD5, &c.part.MD5)
	case "description":
		text(HasDescription, &c.part.Description)
	case "location":
		text(HasLocation, &c.part.Location)
	case "disposition":
		if len(c.part.DispositionParams) == 0 { // a later field counts if the earlier one had no parameters
			if kind, params, ok := disposition(structured(value)); ok {
				c.part.Disposition, c.part.DispositionParams = kind, params
				c.part.Present |= HasDisposition
			}
		}
	case "language":
		if len(c.part.Language) == 0 {
			c.part.Language = languages(structured(value))
		}
	}
}

// lowered returns a name in lower case in buffer, or as it is if it is longer.
func lowered(name, buffer []byte) []byte {
	if len(name) > len(buffer) {
		return name
	}
	for i, c := range name {
		if c >= 'A' && c <= 'Z' {
			c |= 0x20
		}
		buffer[i] = c
	}
	return buffer[:len(name)]
}

// finish gives the part its Content fields if they are valid: in a part of a multipart, and in a message with MIME-Version or Content-Type.
func (c *content) finish(top, parent *openPart) {
	part := top.part
	if top.mime = top.mime || c.mime; top.mime {
		lines, header, body, envelope := part.Lines, part.Header, part.Body, part.Envelope
		*part = c.part
		part.Lines, part.Header, part.Body, part.Envelope = lines, header, body, envelope
	}
	if !part.Present.Has(HasContentType) {
		part.Type, part.Subtype = "text", "plain"
		if parent != nil && parent.digest { // RFC 2046, section 5.1.5
			part.Type, part.Subtype = "message", "rfc822"
			top.message = true
		}
	}
	switch {
	case strings.EqualFold(part.Type, "message"):
		top.message = top.message || strings.EqualFold(part.Subtype, "rfc822") || strings.EqualFold(part.Subtype, "global")
	case part.IsMultipart():
		top.digest = strings.EqualFold(part.Subtype, "digest")
		if marker := part.Param("boundary"); part.hasParam("boundary") {
			top.marker = []byte(marker[:min(len(marker), maxBoundaryBytes)])
		}
	}
	if part.Envelope != nil {
		part.Envelope.finish()
	}
}
