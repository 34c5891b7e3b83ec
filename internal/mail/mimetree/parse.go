package mimetree

import "bytes"

// Parse parses a message.
func Parse(message []byte) *Part {
	p := parser{message: message}
	root := p.open(nil, 0)
	root.Envelope = &Envelope{}
	for at := p.headers(0); at < len(message) && len(p.boundaries) > 0; {
		start, end, found, closing := p.nextBoundary(at)
		if start < 0 {
			break
		}
		body := start
		if start > at {
			body = beforeLineEnd(message, at, start)
		}
		owner := p.boundaries[found].owner
		p.closeAbove(owner, body)
		p.boundaries = p.boundaries[:found]
		if closing {
			at = end // the text after the last part belongs to the owner
			continue
		}
		if p.parts >= maxParts {
			break
		}
		p.boundaries = p.boundaries[:found+1]
		if end > start && message[end-1] != '\n' {
			break // the boundary is the last line, and no part follows
		}
		p.openChild(end)
		at = p.headers(end)
	}
	p.closeAbove(-1, len(message))
	countLines(root, message)
	return root
}

// A parser is the state of Parse: the open parts from the message to the innermost one, and the boundaries of those that are multipart.
type parser struct {
	message    []byte
	stack      []openPart
	boundaries []boundary
	parts      int
}

type openPart struct {
	part    *Part
	mime    bool   // its Content fields are valid
	digest  bool   // multipart/digest
	message bool   // it holds a message
	closed  bool   // its body has an end
	marker  []byte // boundary of Content-Type
}

type boundary struct {
	owner int // index in the stack
	text  []byte
}

func (p *parser) open(parent *Part, at int) *Part {
	part := &Part{Header: Range{int64(at), int64(at)}}
	if parent != nil {
		parent.Children = append(parent.Children, part)
	}
	p.stack = append(p.stack, openPart{part: part})
	p.parts++
	return part
}

// openChild opens a part of the innermost part, a multipart.
func (p *parser) openChild(at int) {
	p.open(p.stack[len(p.stack)-1].part, at)
	p.stack[len(p.stack)-1].mime = true
}

// closeAbove closes the parts above an index of the stack.
func (p *parser) closeAbove(index, at int) {
	for len(p.stack) > index+1 {
		top := &p.stack[len(p.stack)-1]
		if !top.closed {
			top.part.Body.To = int64(at)
		}
		p.stack = p.stack[:len(p.stack)-1]
	}
}

// headers parses the header of the innermost part, and as long as it is a message the header of that message. It returns where the body begins.
func (p *parser) headers(at int) int {
	for {
		end, cut := p.header(at)
		top := &p.stack[len(p.stack)-1]
		part := top.part
		if part.Header.To = int64(end); cut {
			part.Header.To = int64(beforeLineEnd(p.message, at, end)) // the line end belongs to the boundary
			top.closed = true
		}
		part.Body = Range{part.Header.To, part.Header.To}
		if !top.message || !p.isShallow() {
			return end
		}
		child := p.open(part, int(part.Body.From))
		child.Envelope = &Envelope{}
		if cut {
			child.Body, child.Type, child.Subtype = child.Header, "text", "plain"
			p.stack[len(p.stack)-1].closed = true
			return end
		}
		at = end
	}
}

// nextBoundary finds the first line from at that is a boundary: its begin, its end, and the index of the boundary. start is -1 without one.
func (p *parser) nextBoundary(at int) (start, end, found int, closing bool) {
	for first := true; ; first = false {
		if !first || !bytes.HasPrefix(p.message[at:], []byte("--")) {
			next := bytes.Index(p.message[at:], []byte("\n--"))
			if next < 0 {
				return -1, 0, 0, false
			}
			at += next + 1
		}
		if found, closing = p.boundaryAt(at); found >= 0 {
			end = len(p.message)
			if n := bytes.IndexByte(p.message[at:], '\n'); n >= 0 {
				end = at + n + 1
			}
			return at, end, found, closing
		}
	}
}

// boundaryAt returns the boundary that a line which begins with -- has, or -1. A line has a boundary if it begins with it; of several boundaries
// it is the innermost one that is the whole line, or else the longest one.
func (p *parser) boundaryAt(at int) (found int, closing bool) {
	line := p.message[at+2:]
	line = line[:min(len(line), 1000)] // boundaries are shorter
	text := line
	if n := bytes.IndexByte(line, '\n'); n >= 0 {
		text = bytes.TrimSuffix(line[:n], []byte("\r"))
	}
	withoutDashes := len(bytes.TrimSuffix(text, []byte("--")))
	found = -1
	for i := len(p.boundaries) - 1; i >= 0; i-- {
		b := p.boundaries[i].text
		if len(b) <= len(text) && (found < 0 || len(b) > len(p.boundaries[found].text)) && bytes.HasPrefix(text, b) {
			found = i
			if len(b) == len(text) || len(b) == withoutDashes {
				break // the whole line is this boundary
			}
		}
	}
	if found >= 0 {
		closing = bytes.HasPrefix(line[len(p.boundaries[found].text):], []byte("--"))
	}
	return found, closing
}

// beforeLineEnd returns where the line end before at begins. It is not before from.
func beforeLineEnd(message []byte, from, at int) int {
	if at > from && message[at-1] == '\n' {
		if at--; at > from && message[at-1] == '\r' {
			at--
		}
	}
	return at
}

// countLines counts the lines of each body. It reads each byte once.
func countLines(p *Part, message []byte) {
	count := func(from, to int64) {
		if to > from {
			p.Lines += int64(bytes.Count(message[from:to], []byte("\n")))
		}
	}
	at := p.Body.From
	for _, child := range p.Children {
		count(at, child.Body.From)
		countLines(child, message)
		p.Lines += child.Lines
		at = child.Body.To
	}
	count(at, p.Body.To)
}
