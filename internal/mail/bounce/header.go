package bounce

import (
	"bytes"
	"io"
	"mime"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/encoding/htmlindex"
)

// The limits of the parser. A report has a few kilobytes, besides the message that came
// back; the parser ignores all beyond these limits.
const (
	maxFields     = 200       // of one header
	maxFieldBytes = 8 << 10   // of one field
	maxRaw        = 1 << 20   // of a message
	maxParts      = 32        // of a message, all levels together
	maxDepth      = 5         // of parts in parts
	maxPartBytes  = 256 << 10 // of one part, decoded
	maxReports    = 100       // of a message
)

// A header has the fields of a message or a part by their names in lower case, in
// the order in which they stand. Servers write headers that no strict reader takes;
// a line that is no field is skipped here.
type header map[string][]string

// get returns the first field of a name, unfolded.
func (h header) get(name string) string {
	if all := h[name]; len(all) > 0 {
		return all[0]
	}
	return ""
}

// words returns a field with its encoded words (RFC 2047) read, in lower case.
func (h header) words(name string) string {
	return strings.ToLower(decodeWords(h.get(name)))
}

var wordDecoder = mime.WordDecoder{CharsetReader: func(charset string, r io.Reader) (io.Reader, error) {
	encoding, err := htmlindex.Get(charset)
	if err != nil {
		return nil, err
	}
	return encoding.NewDecoder().Reader(r), nil
}}

// decodeWords reads encoded words; what cannot be read stays as it is.
func decodeWords(text string) string {
	if decoded, err := wordDecoder.DecodeHeader(text); err == nil {
		return decoded
	}
	return text
}

// cutHeader splits a message, or a part, into its header and what follows the
// first empty line.
func cutHeader(raw []byte) (h header, body []byte) {
	h = header{}
	fields := 0
	for len(raw) > 0 {
		line, rest := cutLine(raw)
		if len(line) == 0 {
			return h, rest
		}
		raw = rest
		before, after, ok := bytes.Cut(line, []byte(":"))
		name := bytes.TrimRight(before, " \t")
		ok = ok && fields < maxFields && isFieldName(name)
		var value strings.Builder
		if ok {
			value.WriteString(strings.TrimSpace(clean(after[:min(len(after), maxFieldBytes)])))
		}
		for len(raw) > 0 && (raw[0] == ' ' || raw[0] == '\t') { // it goes on
			line, raw = cutLine(raw)
			if ok && value.Len()+len(line) < maxFieldBytes {
				value.WriteString(" " + strings.TrimSpace(clean(line)))
			}
		}
		if ok {
			fields++
			lower := strings.ToLower(string(name))
			h[lower] = append(h[lower], value.String())
		}
	}
	return h, nil
}

// cutLine returns the first line without its end, and what follows it.
func cutLine(text []byte) (line, rest []byte) {
	if i := bytes.IndexByte(text, '\n'); i >= 0 {
		line, rest = text[:i], text[i+1:]
	} else {
		line = text
	}
	return bytes.TrimSuffix(line, []byte("\r")), rest
}

// isFieldName reports whether a field may be called so (RFC 5322, section 3.6.8).
func isFieldName(name []byte) bool {
	for _, c := range name {
		if c <= ' ' || c >= 0x7f {
			return false
		}
	}
	return len(name) > 0 && len(name) <= 100
}

// lowered returns valid UTF-8 in lower case. It leaves characters whose lower case has
// another length, so that offsets are the same in both texts.
func lowered(text string) string {
	return strings.Map(func(r rune) rune {
		if small := unicode.ToLower(r); utf8.RuneLen(small) == utf8.RuneLen(r) {
			return small
		}
		return r
	}, text)
}

// clean makes one line of valid UTF-8 without control characters.
func clean(text []byte) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(string(text), "\ufffd"))
}
