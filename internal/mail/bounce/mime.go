package bounce

import (
	"bytes"
	"encoding/base64"
	"io"
	"mime"
	"mime/quotedprintable"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/encoding/htmlindex"
)

// Limits of a message. A report has a few kilobytes in addition to the original message; everything
// beyond these limits is ignored.
const (
	maxFields     = 200       // of one header
	maxFieldBytes = 8 << 10   // of one field
	maxRaw        = 1 << 20   // of a message
	maxParts      = 32        // of a message, on all levels together
	maxDepth      = 5         // of parts in parts
	maxPartBytes  = 256 << 10 // of one part, decoded
	maxReports    = 100       // of a message
)

// A header contains the fields of a message or a part in their order, with their names in lower case. It skips lines
// that are not fields, because some servers write such headers.
type header map[string][]string

// get returns the first field with a name, unfolded.
func (h header) get(name string) string {
	if all := h[name]; len(all) > 0 {
		return all[0]
	}
	return ""
}

// words returns a field with its encoded words (RFC 2047) decoded, in lower case.
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

// decodeWords decodes encoded words, and leaves invalid ones unchanged.
func decodeWords(text string) string {
	if decoded, err := wordDecoder.DecodeHeader(text); err == nil {
		return decoded
	}
	return text
}

// cutHeader splits a message or a part into its header and the text after the first empty line.
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
		for len(raw) > 0 && (raw[0] == ' ' || raw[0] == '\t') { // a folded line
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

// cutLine returns the first line without its end, and the rest.
func cutLine(text []byte) (line, rest []byte) {
	if i := bytes.IndexByte(text, '\n'); i >= 0 {
		line, rest = text[:i], text[i+1:]
	} else {
		line = text
	}
	return bytes.TrimSuffix(line, []byte("\r")), rest
}

// isFieldName reports whether a name is valid for a field (RFC 5322, section 3.6.8).
func isFieldName(name []byte) bool {
	for _, c := range name {
		if c <= ' ' || c >= 0x7f {
			return false
		}
	}
	return len(name) > 0 && len(name) <= 100
}

// lowered returns valid UTF-8 in lower case, but only for characters that keep their length, so that positions in
// both texts are the same.
func lowered(text string) string {
	return strings.Map(func(r rune) rune {
		if small := unicode.ToLower(r); utf8.RuneLen(small) == utf8.RuneLen(r) {
			return small
		}
		return r
	}, text)
}

// clean returns one line of valid UTF-8 without control characters.
func clean(text []byte) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(string(text), "\ufffd"))
}

// A part is a leaf of a message: anything but a multipart. A message in a message is a leaf, too.
type part struct {
	kind   string // media type in lower case
	header header
	body   []byte // decoded; text in UTF-8 if its character set is known
}

// parts splits a message at its boundaries. It does not use a MIME reader because many reports lack the last
// boundary or do not close it.
func parts(h header, body []byte) []part {
	var all []part
	appendParts(&all, h, body, 0)
	return all
}

func appendParts(all *[]part, h header, body []byte, depth int) {
	if len(*all) >= maxParts {
		return
	}
	kind, params := mediaType(h.get("content-type"))
	boundary := params["boundary"]
	if !strings.HasPrefix(kind, "multipart/") || boundary == "" || depth == maxDepth {
		*all = append(*all, part{kind, h, decode(h, kind, params["charset"], body)})
		return
	}
	delimiter := []byte("--" + boundary)
	begun, start := false, 0
	for at := 0; at < len(body); {
		line, rest := cutLine(body[at:])
		next := len(body) - len(rest)
		if bytes.HasPrefix(line, delimiter) {
			if begun {
				appendPart(all, body[start:at], depth)
			}
			if begun = !bytes.HasPrefix(line[len(delimiter):], []byte("--")); !begun {
				return
			}
			start = next
		}
		at = next
	}
	if begun {
		appendPart(all, body[start:], depth)
	}
}

func appendPart(all *[]part, raw []byte, depth int) {
	h, body := cutHeader(raw)
	appendParts(all, h, body, depth+1)
}

// mediaType parses a Content-Type; it returns text/plain for an invalid one (RFC 2045, section 5.2).
func mediaType(field string) (kind string, params map[string]string) {
	kind, params, err := mime.ParseMediaType(field)
	if kind == "" || err != nil && len(params) == 0 && !strings.Contains(kind, "/") {
		return "text/plain", nil
	}
	return kind, params
}

// decode decodes the transfer encoding of a part, and the character set of text.
func decode(h header, kind, charset string, body []byte) []byte {
	var from io.Reader = bytes.NewReader(body)
	switch strings.ToLower(h.get("content-transfer-encoding")) {
	case "quoted-printable":
		from = quotedprintable.NewReader(from)
	case "base64":
		from = base64.NewDecoder(base64.StdEncoding, from)
	}
	if charset != "" && strings.HasPrefix(kind, "text/") {
		if encoding, err := htmlindex.Get(charset); err == nil {
			from = encoding.NewDecoder().Reader(from)
		}
	}
	decoded, _ := io.ReadAll(io.LimitReader(from, maxPartBytes)) // use the readable part
	return decoded
}

// find returns the first part of one of some kinds, or nil.
func find(all []part, kinds ...string) *part {
	for i := range all {
		for _, kind := range kinds {
			if all[i].kind == kind {
				return &all[i]
			}
		}
	}
	return nil
}

// readable returns the first text part of the message.
func readable(all []part) string {
	for _, kind := range []string{"text/plain", "text/html"} {
		p := find(all, kind)
		if p == nil || len(bytes.TrimSpace(p.body)) == 0 {
			continue
		}
		text := strings.ToValidUTF8(string(p.body), "\ufffd")
		if kind == "text/html" {
			text = withoutTags(text)
		}
		return strings.ReplaceAll(text, "\r\n", "\n")
	}
	return ""
}

// withoutTags returns the text of HTML.
func withoutTags(html string) string {
	var text strings.Builder
	lower := lowered(html)
	endless := map[string]bool{} // elements that are not closed in the rest
	for html != "" {
		before, rest, tag := strings.Cut(html, "<")
		text.WriteString(before)
		if !tag {
			break
		}
		name, after, closed := strings.Cut(rest, ">")
		if !closed {
			break
		}
		if strings.Contains(name, "@") && !strings.ContainsAny(name, " =\"") { // an address, not a tag
			text.WriteString("<" + name + ">")
		}
		lower = lower[len(lower)-len(after):]
		switch kind, _, _ := strings.Cut(strings.ToLower(strings.Trim(name, "/ ")), " "); kind {
		case "br", "p", "div", "tr", "li", "h1", "h2", "h3", "table":
			text.WriteByte('\n')
		case "style", "script":
			if strings.HasPrefix(name, "/") || endless[kind] {
				break
			}
			if end := strings.Index(lower, "</"+kind); end >= 0 {
				after, lower = after[end:], lower[end:]
			} else {
				endless[kind] = true
			}
		}
		html = after
	}
	return entities.Replace(text.String())
}

var entities = strings.NewReplacer("&nbsp;", " ", "&lt;", "<", "&gt;", ">", "&quot;", `"`, "&#39;", "'", "&amp;", "&")
