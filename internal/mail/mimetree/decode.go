package mimetree

import (
	"bytes"
	"encoding/base64"
	"errors"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/htmlindex"
	"golang.org/x/text/encoding/ianaindex"
)

// ErrUnknownEncoding says that a part has a content transfer encoding that nobody knows (UNKNOWN-CTE, RFC 3516).
var ErrUnknownEncoding = errors.New("the content transfer encoding is not known")

// Decode returns the body of a part without its content transfer encoding. It ignores what is invalid in an encoding (RFC 2045, sections 6.7
// and 6.8). The result can be a part of message.
func Decode(part *Part, message []byte) ([]byte, error) {
	body := message[part.Body.From:part.Body.To]
	switch strings.ToLower(part.Encoding) {
	case "", "7bit", "8bit", "binary":
		return body, nil
	case "base64":
		return decodeBase64(body), nil
	case "quoted-printable":
		return decodeQuotedPrintable(body), nil
	}
	return nil, ErrUnknownEncoding
}

// decodeBase64 ignores characters that are not in the alphabet, and ends at the padding.
func decodeBase64(text []byte) []byte {
	clean := make([]byte, 0, len(text))
	for _, c := range text {
		if c == '=' {
			break
		}
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '+' || c == '/' {
			clean = append(clean, c)
		}
	}
	if len(clean)%4 == 1 {
		clean = clean[:len(clean)-1]
	}
	n, err := base64.RawStdEncoding.Decode(clean, clean)
	if err != nil {
		return clean[:0] // cannot happen: all characters are in the alphabet
	}
	return clean[:n]
}

// decodeQuotedPrintable removes soft line ends and white space before line ends, and keeps invalid escapes as they are.
func decodeQuotedPrintable(text []byte) []byte {
	out := make([]byte, 0, len(text))
	for len(text) > 0 {
		line, end := text, []byte(nil)
		if n := bytes.IndexByte(text, '\n'); n >= 0 {
			line, end = text[:n], text[n:n+1]
			if n > 0 && text[n-1] == '\r' {
				line, end = text[:n-1], text[n-1:n+1]
			}
		}
		text = text[len(line)+len(end):]
		line = bytes.TrimRight(line, " \t")
		soft := bytes.HasSuffix(line, []byte("="))
		if soft {
			line = line[:len(line)-1]
		}
		for i := 0; i < len(line); i++ {
			if line[i] == '=' && i+2 < len(line) {
				if high, low := hexValue(line[i+1]), hexValue(line[i+2]); high >= 0 && low >= 0 {
					out = append(out, byte(high<<4|low))
					i += 2
					continue
				}
			}
			out = append(out, line[i])
		}
		if !soft {
			out = append(out, end...)
		}
	}
	return out
}

func hexValue(c byte) int {
	switch {
	case c >= '0' && c <= '9':
		return int(c - '0')
	case c >= 'a' && c <= 'f':
		return int(c-'a') + 10
	case c >= 'A' && c <= 'F':
		return int(c-'A') + 10
	}
	return -1
}

// Text returns the text of a part in UTF-8. Bytes that are not valid in the character set become U+FFFD. A part with an unknown encoding or
// character set is read as it is.
func Text(part *Part, message []byte) string {
	body, err := Decode(part, message)
	if err != nil {
		body = message[part.Body.From:part.Body.To]
	}
	return toUTF8(body, part.Param("charset"))
}

func toUTF8(text []byte, charset string) string {
	if e := charsetNamed(charset); e != nil {
		if decoded, err := e.NewDecoder().Bytes(text); err == nil {
			text = decoded
		}
	}
	if utf8.Valid(text) {
		return string(text)
	}
	return strings.ToValidUTF8(string(text), "\ufffd")
}

// charsetNamed returns nil for UTF-8, US-ASCII and unknown character sets.
func charsetNamed(name string) encoding.Encoding {
	name = strings.ToLower(strings.TrimSpace(name))
	switch name {
	case "", "utf-8", "utf8", "us-ascii", "ascii":
		return nil
	}
	if e, err := htmlindex.Get(name); err == nil {
		return e
	}
	e, err := ianaindex.MIME.Encoding(name)
	if err != nil {
		return nil
	}
	return e
}

// DecodeHeader returns the text of an unstructured field, or of a phrase: unfolded, and with its encoded words (RFC 2047) decoded. It keeps
// words that are invalid. A character may be split between words.
func DecodeHeader(value string) string {
	value = strings.NewReplacer("\r\n", "", "\n", "").Replace(value)
	if !strings.Contains(value, "=?") {
		return strings.ToValidUTF8(value, "\ufffd")
	}
	var out strings.Builder
	var pending []byte // the bytes of adjacent words with the same character set
	var charset string
	flush := func() {
		out.WriteString(toUTF8(pending, charset))
		pending = pending[:0]
	}
	afterWord := false
	for value != "" {
		start := strings.Index(value, "=?")
		if start < 0 {
			break
		}
		wordCharset, decoded, length := encodedWord(value[start:])
		if length == 0 {
			flush()
			out.WriteString(strings.ToValidUTF8(value[:start+2], "\ufffd"))
			value, afterWord = value[start+2:], false
			continue
		}
		if between := value[:start]; !afterWord || strings.Trim(between, " \t") != "" {
			flush()
			out.WriteString(strings.ToValidUTF8(between, "\ufffd"))
		}
		if !strings.EqualFold(charset, wordCharset) {
			flush()
			charset = wordCharset
		}
		pending = append(pending, decoded...)
		value, afterWord = value[start+length:], true
	}
	flush()
	out.WriteString(strings.ToValidUTF8(value, "\ufffd"))
	return out.String()
}

// encodedWord decodes the word at the begin of text: =?charset?B?text?= or =?charset?Q?text?=. length is 0 if there is none.
func encodedWord(text string) (charset string, decoded []byte, length int) {
	charset, rest, ok := strings.Cut(text[2:], "?")
	if !ok || charset == "" || len(rest) < 2 || rest[1] != '?' || strings.ContainsAny(charset, " \t=") {
		return "", nil, 0
	}
	encoded, _, ok := strings.Cut(rest[2:], "?=")
	if !ok {
		return "", nil, 0
	}
	charset, _, _ = strings.Cut(charset, "*") // the language, RFC 2231
	length = 2 + strings.IndexByte(text[2:], '?') + 1 + 2 + len(encoded) + 2
	switch rest[0] | 0x20 {
	case 'b':
		return charset, decodeBase64([]byte(encoded)), length
	case 'q':
		return charset, decodeQ(encoded), length
	}
	return "", nil, 0
}

func decodeQ(text string) []byte {
	out := make([]byte, 0, len(text))
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '_':
			out = append(out, ' ')
		case c == '=' && i+2 < len(text) && hexValue(text[i+1]) >= 0 && hexValue(text[i+2]) >= 0:
			out = append(out, byte(hexValue(text[i+1])<<4|hexValue(text[i+2])))
			i += 2
		default:
			out = append(out, c)
		}
	}
	return out
}

// Filename returns the name of the file that a part holds, decoded, or "".
func (p *Part) Filename() string {
	for _, list := range [][]Param{p.DispositionParams, p.Params} {
		for _, param := range list {
			switch strings.ToLower(param.Name) {
			case "filename", "name":
				return DecodeHeader(param.Value)
			case "filename*", "name*":
				return decodeExtended(param.Value)
			}
		}
	}
	return ""
}

// decodeExtended decodes a value of RFC 2231: charset'language'text.
func decodeExtended(value string) string {
	charset, rest, ok := strings.Cut(value, "'")
	if !ok {
		return strings.ToValidUTF8(value, "\ufffd")
	}
	if _, text, ok := strings.Cut(rest, "'"); ok {
		rest = text
	}
	out := make([]byte, 0, len(rest))
	for i := 0; i < len(rest); i++ {
		if rest[i] == '%' && i+2 < len(rest) && hexValue(rest[i+1]) >= 0 && hexValue(rest[i+2]) >= 0 {
			out = append(out, byte(hexValue(rest[i+1])<<4|hexValue(rest[i+2])))
			i += 2
		} else {
			out = append(out, rest[i])
		}
	}
	return toUTF8(out, charset)
}
