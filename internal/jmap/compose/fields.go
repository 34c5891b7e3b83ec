package compose

import (
	"encoding/base64"
	"strings"
	"time"
	"unicode/utf8"

	"fanfare.dev/fanfare/internal/jmap/header"
)

const (
	lineBytes = 76  // fields are folded at spaces before this column
	longWord  = 900 // a word that cannot be folded must be encoded
	wordBytes = 45  // of text in an encoded word, which has at most 75 characters
)

// A Field is a field of a header. Its value is encoded, and not folded.
type Field struct{ Name, Value string }

// Text returns the value of an unstructured field.
func Text(text string) string {
	text = oneLine(text)
	if plain(text) && !strings.Contains(text, "=?") && !hasLongWord(text) && strings.TrimSpace(text) == text {
		return text
	}
	return encodedWords(text)
}

// Addresses returns the value of a field with addresses.
func Addresses(list []header.Address) string {
	texts := make([]string, len(list))
	for i, a := range list {
		texts[i] = address(a)
	}
	return strings.Join(texts, ", ")
}

// Groups returns the value of a field with groups of addresses.
func Groups(list []header.Group) string {
	var texts []string
	for _, g := range list {
		switch {
		case g.Name != nil:
			texts = append(texts, phrase(*g.Name)+": "+Addresses(g.Addresses)+";")
		case len(g.Addresses) > 0:
			texts = append(texts, Addresses(g.Addresses))
		}
	}
	return strings.Join(texts, ", ")
}

func address(a header.Address) string {
	email := strings.Map(func(r rune) rune {
		if strings.ContainsRune("<>\r\n\x00", r) {
			return -1
		}
		return r
	}, a.Email)
	if a.Name == nil || strings.TrimSpace(*a.Name) == "" {
		return "<" + email + ">"
	}
	return phrase(*a.Name) + " <" + email + ">"
}

// phrase writes a display name.
func phrase(name string) string {
	name = strings.TrimSpace(oneLine(name))
	switch {
	case !plain(name) || strings.Contains(name, "=?") || hasLongWord(name):
		return encodedWords(name)
	case strings.ContainsFunc(name, func(r rune) bool { return r != ' ' && !atext(r) }) || name == "" || strings.Contains(name, "  "):
		return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(name) + `"`
	}
	return name
}

func atext(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("!#$%&'*+-/=?^_`{|}~", r)
}

// MessageIDs returns the value of a field with message ids, or with URLs.
func MessageIDs(ids []string) string {
	texts := make([]string, len(ids))
	for i, id := range ids {
		texts[i] = "<" + strings.Map(func(r rune) rune {
			if r <= ' ' || r == '<' || r == '>' {
				return -1
			}
			return r
		}, id) + ">"
	}
	return strings.Join(texts, " ")
}

// URLs returns the value of a field with URLs.
func URLs(urls []string) string { return strings.ReplaceAll(MessageIDs(urls), "> <", ">, <") }

// Date returns the value of a field with a date.
func Date(t time.Time) string { return t.Format("Mon, 02 Jan 2006 15:04:05 -0700") }

// oneLine joins the lines of a text.
func oneLine(text string) string {
	return strings.Map(func(r rune) rune {
		switch r {
		case '\r', 0:
			return -1
		case '\n', '\t':
			return ' '
		}
		return r
	}, strings.ReplaceAll(strings.ToValidUTF8(text, "\ufffd"), "\r\n ", " "))
}

func plain(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r > '~' })
}

func hasLongWord(text string) bool {
	for word := range strings.SplitSeq(text, " ") {
		if len(word) > longWord {
			return true
		}
	}
	return false
}

// encodedWords encodes a text as words in UTF-8 and base64 (RFC 2047). No word splits a character.
func encodedWords(text string) string {
	var words []string
	for text != "" {
		n := min(len(text), wordBytes)
		for n < len(text) && !utf8.RuneStart(text[n]) {
			n--
		}
		words = append(words, "=?utf-8?B?"+base64.StdEncoding.EncodeToString([]byte(text[:n]))+"?=")
		text = text[n:]
	}
	return strings.Join(words, " ")
}

// append writes a field, folded at spaces.
func (f Field) append(dst []byte) []byte {
	dst = append(dst, f.Name...)
	dst = append(dst, ':')
	column := len(f.Name) + 1
	for i, word := range strings.Split(oneLine(f.Value), " ") {
		if word == "" && i > 0 {
			dst = append(dst, ' ')
			column++
			continue
		}
		if column+1+len(word) > lineBytes && column > len(f.Name)+1 && dst[len(dst)-1] != ' ' {
			dst = append(dst, '\r', '\n')
			column = 0
		}
		dst = append(dst, ' ')
		dst = append(dst, word...)
		column += 1 + len(word)
	}
	return append(dst, '\r', '\n')
}

// Parameter returns "; name=value" of a structured field; a value that is not ASCII is encoded (RFC 2231).
func Parameter(name, value string) string {
	value = oneLine(value)
	if plain(value) && len(value) <= 200 {
		if value != "" && !strings.ContainsFunc(value, func(r rune) bool { return r == ' ' || strings.ContainsRune(`()<>@,;:\"/[]?=`, r) }) {
			return "; " + name + "=" + value
		}
		return "; " + name + `="` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(value) + `"`
	}
	const most = 50 // characters of a section
	var sections []string
	section := "utf-8''"
	for _, r := range value {
		piece := percent(string(r))
		if len(section)+len(piece) > most {
			sections, section = append(sections, section), ""
		}
		section += piece
	}
	sections = append(sections, section)
	if len(sections) == 1 {
		return "; " + name + "*=" + sections[0]
	}
	var all strings.Builder
	for i, s := range sections {
		all.WriteString("; " + name + "*" + itoa(i) + "*=" + s)
	}
	return all.String()
}

func percent(text string) string {
	const hex = "0123456789ABCDEF"
	var b strings.Builder
	for i := range len(text) {
		if c := text[i]; atext(rune(c)) && !strings.ContainsRune("*'%", rune(c)) {
			b.WriteByte(c)
		} else {
			b.Write([]byte{'%', hex[c>>4], hex[c&15]})
		}
	}
	return b.String()
}
