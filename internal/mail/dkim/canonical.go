package dkim

import "bytes"

var crlf = []byte("\r\n")

// appendField appends a header field, with its line end, in the relaxed form of RFC 6376, section
// 3.4.2. name is the length of its name in bytes.
func appendField(dst, field []byte, name int) []byte {
	for _, c := range bytes.TrimRight(field[:name], " \t") {
		if 'A' <= c && c <= 'Z' {
			c |= 0x20
		}
		dst = append(dst, c)
	}
	dst = append(dst, ':')
	space := false
	start := len(dst)
	for _, c := range field[name+1:] {
		switch c {
		case ' ', '\t':
			space = true
			continue
		case '\r', '\n': // the end of the field, or a fold, which white space follows
			continue
		}
		if space && len(dst) > start {
			dst = append(dst, ' ')
		}
		space = false
		dst = append(dst, c)
	}
	return append(dst, '\r', '\n')
}

// relaxedBody returns a body in the relaxed form of RFC 6376, section 3.4.4. If the body has that
// form already, the result is a part of body. Otherwise it is written into scratch, which is
// returned for the next call. If goesOn is true, more of the body follows, so empty lines at the
// end count.
func relaxedBody(body, scratch []byte, goesOn bool) (relaxed, kept []byte) {
	if bytes.HasSuffix(body, crlf) && tidy(body) {
		end := len(body)
		for !goesOn && bytes.HasSuffix(body[:end-2], crlf) {
			end -= 2
		}
		if goesOn || end > 2 {
			return body[:end], scratch
		}
		return nil, scratch
	}
	scratch = appendBody(scratch[:0], body, goesOn)
	return scratch, scratch
}

// tidy reports whether each line of a body has only the white space of the relaxed form.
func tidy(body []byte) bool {
	if bytes.IndexByte(body, '\t') >= 0 {
		return false
	}
	for rest := body; ; {
		i := bytes.IndexByte(rest, ' ')
		if i < 0 {
			return true
		}
		if i+1 == len(rest) || rest[i+1] == ' ' || rest[i+1] == '\r' {
			return false
		}
		rest = rest[i+2:]
	}
}

// appendBody appends a body in the relaxed form: white space at the end of a line is removed,
// other white space becomes one space, and empty lines at the end are removed unless more of
// the body follows.
func appendBody(dst, body []byte, goesOn bool) []byte {
	empty := 0
	for len(body) > 0 {
		line := body
		if i := bytes.Index(body, crlf); i >= 0 {
			line, body = body[:i], body[i+2:]
		} else {
			body = nil
		}
		if line = bytes.TrimRight(line, " \t"); len(line) == 0 {
			empty++
			continue
		}
		for ; empty > 0; empty-- {
			dst = append(dst, '\r', '\n')
		}
		dst = appendLine(dst, line)
		dst = append(dst, '\r', '\n')
	}
	for ; goesOn && empty > 0; empty-- {
		dst = append(dst, '\r', '\n')
	}
	return dst
}

// appendLine appends a line with each run of white space as one space.
func appendLine(dst, line []byte) []byte {
	if bytes.IndexByte(line, '\t') < 0 && !bytes.Contains(line, []byte("  ")) {
		return append(dst, line...)
	}
	space := false
	for _, c := range line {
		if c == ' ' || c == '\t' {
			space = true
			continue
		}
		if space {
			dst = append(dst, ' ')
			space = false
		}
		dst = append(dst, c)
	}
	return dst
}
