package header

import (
	"net/mail"
	"strings"
	"time"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"fanfare.dev/fanfare/internal/mail/mimetree"
)

// Raw returns a value in the form Raw (section 4.1.2.1).
func Raw(value string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(value, "\ufffd"), "\x00", "")
}

// Text returns a value in the form Text (section 4.1.2.2).
func Text(value string) string {
	text := strings.Map(func(r rune) rune {
		if r != '\t' && unicode.IsControl(r) {
			return -1
		}
		return r
	}, mimetree.DecodeHeader(strings.ReplaceAll(value, "\x00", "")))
	return norm.NFC.String(strings.TrimSpace(text))
}

// MessageIDs returns a value in the form MessageIds (section 4.1.2.5), or nil if it cannot be read.
func MessageIDs(value string) []string {
	s := scan{text: value}
	var ids []string
	for {
		s.space()
		if s.end() {
			return ids
		}
		if s.text[s.at] == ',' { // not permitted, but usual
			s.at++
			continue
		}
		id, ok := s.angle()
		if !ok || id == "" {
			return nil
		}
		ids = append(ids, id)
	}
}

// URLs returns a value in the form URLs (section 4.1.2.7), or nil if it cannot be read.
func URLs(value string) []string {
	s := scan{text: value}
	var urls []string
	for {
		s.space()
		if s.end() {
			return urls
		}
		if s.text[s.at] == ',' {
			s.at++
			continue
		}
		url, ok := s.angle()
		if !ok || url == "" {
			return nil
		}
		urls = append(urls, url)
	}
}

// Date returns a value in the form Date (section 4.1.2.6). It is not ok if the value cannot be read.
func Date(value string) (t time.Time, ok bool) {
	value = strings.Join(strings.Fields(unfold(value)), " ")
	t, err := mail.ParseDate(value)
	if err != nil {
		if zone := strings.LastIndex(value, " ("); zone > 0 { // a comment that net/mail does not know
			t, err = mail.ParseDate(value[:zone])
		}
	}
	return t, err == nil && t.Year() >= 0 && t.Year() <= 9999
}

// FormatDate returns a time as a Date (RFC 8620, section 1.4) with its offset.
func FormatDate(t time.Time) string {
	if _, offset := t.Zone(); offset%60 != 0 || offset <= -24*3600 || offset >= 24*3600 {
		t = t.UTC()
	}
	return t.Format("2006-01-02T15:04:05Z07:00")
}

func unfold(value string) string {
	return strings.NewReplacer("\r\n", "", "\n", "", "\r", "").Replace(value)
}

// scan reads a structured value.
type scan struct {
	text string
	at   int
}

func (s *scan) end() bool { return s.at >= len(s.text) }

// space skips white space and comments, and returns the text of the last comment.
func (s *scan) space() (comment string) {
	for !s.end() {
		switch s.text[s.at] {
		case ' ', '\t', '\r', '\n', 0:
			s.at++
		case '(':
			comment = s.comment()
		default:
			return comment
		}
	}
	return comment
}

// comment reads a comment with those in it.
func (s *scan) comment() string {
	var text strings.Builder
	depth := 0
	for ; !s.end(); s.at++ {
		switch c := s.text[s.at]; c {
		case '(':
			if depth++; depth == 1 {
				continue
			}
		case ')':
			if depth--; depth == 0 {
				s.at++
				return text.String()
			}
		case '\\':
			if s.at+1 < len(s.text) {
				s.at++
			}
		case '\r', '\n', 0:
			continue
		}
		text.WriteByte(s.text[s.at])
	}
	return text.String()
}

// quoted reads a quoted string.
func (s *scan) quoted() string {
	var text strings.Builder
	for s.at++; !s.end(); s.at++ {
		switch s.text[s.at] {
		case '"':
			s.at++
			return text.String()
		case '\\':
			if s.at+1 < len(s.text) {
				s.at++
			}
		case '\r', '\n', 0:
			continue
		}
		text.WriteByte(s.text[s.at])
	}
	return text.String()
}

// angle reads a text between angle brackets, without the white space and the comments in it.
func (s *scan) angle() (string, bool) {
	if s.end() || s.text[s.at] != '<' {
		return "", false
	}
	var text strings.Builder
	for s.at++; !s.end(); {
		switch c := s.text[s.at]; c {
		case '>':
			s.at++
			return strings.ToValidUTF8(text.String(), "\ufffd"), true
		case ' ', '\t', '\r', '\n', 0:
			s.at++
		case '<':
			return "", false
		default:
			text.WriteByte(c)
			s.at++
		}
	}
	return "", false
}
