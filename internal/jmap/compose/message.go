package compose

import (
	"bytes"
	"encoding/base64"
	"strconv"
	"strings"
	"unicode/utf8"
)

func itoa(i int) string { return strconv.Itoa(i) }

// A Part is a body part.
type Part struct {
	Type        string  // such as text/plain
	Parameters  string  // of Content-Type, as Parameter writes them
	Fields      []Field // others than Content-Type, Content-Transfer-Encoding and MIME-Version
	Body        []byte  // decoded
	Children    []*Part // of multipart
	IsUTF8Text  bool    // the body is text in UTF-8, whose line ends may be changed
	KeepCharset bool    // Parameters has the charset already
}

// maxLine is the longest line of a body that is not encoded, in bytes (RFC 5322, section 2.1.1).
const maxLine = 998

// Message writes a message. boundary returns a text that occurs in no body.
func Message(fields []Field, root *Part, boundary func() string) []byte {
	var dst []byte
	for _, f := range fields {
		dst = f.append(dst)
	}
	dst = Field{"MIME-Version", "1.0"}.append(dst)
	return root.append(dst, boundary)
}

// append writes the Content fields of a part, an empty line and the body.
func (p *Part) append(dst []byte, boundary func() string) []byte {
	kind := strings.ToLower(p.Type)
	if strings.HasPrefix(kind, "multipart/") {
		marker := boundary()
		dst = Field{"Content-Type", p.Type + p.Parameters + Parameter("boundary", marker)}.append(dst)
		for _, f := range p.Fields {
			dst = f.append(dst)
		}
		for _, child := range p.Children {
			dst = append(dst, "\r\n--"+marker+"\r\n"...)
			dst = child.append(dst, boundary)
		}
		return append(dst, "\r\n--"+marker+"--\r\n"...)
	}
	body, encoding, parameters := p.Body, "", p.Parameters
	if p.IsUTF8Text {
		body = canonical(body)
		if !p.KeepCharset {
			parameters += Parameter("charset", "utf-8")
		}
	}
	switch {
	case strings.HasPrefix(kind, "message/"):
		encoding = sevenOrEight(body) // RFC 2046, section 5.2.1: not base64 and not quoted-printable
	case strings.HasPrefix(kind, "text/") && sevenBit(body):
		encoding = "7bit"
	case p.IsUTF8Text:
		encoding, body = "quoted-printable", quotedPrintable(body)
	default:
		encoding, body = "base64", base64Lines(body)
	}
	dst = Field{"Content-Type", p.Type + parameters}.append(dst)
	dst = Field{"Content-Transfer-Encoding", encoding}.append(dst)
	for _, f := range p.Fields {
		dst = f.append(dst)
	}
	dst = append(dst, '\r', '\n')
	return append(dst, body...)
}

// canonical makes all line ends CR LF.
func canonical(text []byte) []byte {
	if !bytes.ContainsAny(text, "\r\n") {
		return text
	}
	text = bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n"))
	text = bytes.ReplaceAll(text, []byte("\r"), []byte("\n"))
	return bytes.ReplaceAll(text, []byte("\n"), []byte("\r\n"))
}

// sevenBit reports whether a text needs no encoding.
func sevenBit(text []byte) bool {
	line := 0
	for i, c := range text {
		switch {
		case c == '\n':
			if i == 0 || text[i-1] != '\r' {
				return false
			}
			line = -1
		case c == '\r':
			if i+1 == len(text) || text[i+1] != '\n' {
				return false
			}
		case c == 0 || c >= utf8.RuneSelf:
			return false
		}
		if line++; line > maxLine {
			return false
		}
	}
	return true
}

func sevenOrEight(body []byte) string {
	for _, c := range body {
		if c >= utf8.RuneSelf {
			return "8bit"
		}
	}
	return "7bit"
}

// base64Lines encodes a body in lines of 76 characters.
func base64Lines(body []byte) []byte {
	const perLine = 57
	out := make([]byte, 0, len(body)*4/3+len(body)/perLine*2+80)
	for len(body) > 0 {
		n := min(len(body), perLine)
		out = base64.StdEncoding.AppendEncode(out, body[:n])
		out = append(out, '\r', '\n')
		body = body[n:]
	}
	return out
}

// quotedPrintable encodes a text with CR LF line ends.
func quotedPrintable(text []byte) []byte {
	const hex = "0123456789ABCDEF"
	out := make([]byte, 0, len(text)*5/4)
	column := 0
	put := func(piece ...byte) {
		if column+len(piece) > 75 {
			out = append(out, '=', '\r', '\n')
			column = 0
		}
		out = append(out, piece...)
		column += len(piece)
	}
	for i := 0; i < len(text); i++ {
		c := text[i]
		lineEnds := i+1 == len(text) || text[i+1] == '\r'
		switch {
		case c == '\r' && i+1 < len(text) && text[i+1] == '\n':
			out = append(out, '\r', '\n')
			column = 0
			i++
		case c == '=' || c < ' ' && c != '\t' || c > '~' || (c == ' ' || c == '\t') && lineEnds:
			put('=', hex[c>>4], hex[c&15])
		default:
			put(c)
		}
	}
	return out
}
