package bounce

import (
	"bytes"
	"encoding/base64"
	"io"
	"mime"
	"mime/quotedprintable"
	"strings"

	"golang.org/x/text/encoding/htmlindex"
)

// A part is a leaf of a message: something that is no multipart. A message within
// a message is a leaf, too.
type part struct {
	kind   string // media type in lower case
	header header
	body   []byte // decoded; of text in UTF-8, as far as its character set is known
}

// parts takes a message apart, in order. They are cut at their boundaries by hand:
// many reports lack the last one, and some have one that is not closed.
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

// mediaType reads a Content-Type; text/plain where there is none that can be read
// (RFC 2045, section 5.2).
func mediaType(field string) (kind string, params map[string]string) {
	kind, params, err := mime.ParseMediaType(field)
	if kind == "" || err != nil && len(params) == 0 && !strings.Contains(kind, "/") {
		return "text/plain", nil
	}
	return kind, params
}

// decode undoes the transfer encoding of a part and of text its character set.
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
	decoded, _ := io.ReadAll(io.LimitReader(from, maxPartBytes)) // what could be read counts
	return decoded
}

// find returns the first part of one of some kinds; nil if there is none.
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

// readable is what a person would read of the message: its first text part.
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

// withoutTags leaves the text of HTML: a report is read for its words alone.
func withoutTags(html string) string {
	var text strings.Builder
	lower := lowered(html)
	endless := map[string]bool{} // what nothing ends in the rest
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
