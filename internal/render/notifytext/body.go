package notifytext

import (
	"html"
	"regexp"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// A Body is the body of mails, compiled once. It is safe for concurrent use.
//
// Markdown in a value takes effect, so that a text is parsed anew for each person. Most values
// contain none: the text is then parsed once for each choice of its conditional placeholders,
// and values are only inserted.
type Body struct {
	text *Text
	word string // begins the words that stand for placeholders

	mu    sync.RWMutex
	forms map[string]*form // by the choice of conditional placeholders; nil: always parsed
}

// A form is the text for one choice of its conditional placeholders.
type form struct {
	html, plain []segment
	fixed       bool            // values can be inserted
	atLineStart map[string]bool // placeholders whose value must not begin with a digit
}

// maxForms limits the forms of one body.
const maxForms = 64

// NewBody compiles a text for mails.
func NewBody(t *Text) *Body {
	b := &Body{text: t, word: "qnq", forms: map[string]*form{}}
	var all strings.Builder
	for _, s := range t.segments {
		all.WriteString(strings.ToLower(s.text))
	}
	for strings.Contains(all.String(), b.word) {
		b.word += "q"
	}
	return b
}

// Text returns what the body was compiled from.
func (b *Body) Text() *Text { return b.text }

// HTML returns the HTML of a person's mail, without a page around it.
func (b *Body) HTML(values Values) string {
	if f := b.formFor(values); f != nil {
		return fill(f.html, values, html.EscapeString)
	}
	return writeHTML(parse(b.text.insert(values, true)))
}

// Plain returns the plain text of a person's mail. It ends with a line feed.
func (b *Body) Plain(values Values) string {
	if f := b.formFor(values); f != nil {
		return endLine(fill(f.plain, values, func(text string) string { return text }))
	}
	return endLine(writePlain(parse(b.text.insert(values, true))))
}

// preheaderRunes is the length of the text that mail programs show beside the subject.
const preheaderRunes = 256

var ruleLine = regexp.MustCompile(`(?m)^(?:={65}|-{65}|(?:=-){32}=)$`)

// Preheader returns the beginning of the plain text in one line.
func (b *Body) Preheader(values Values) string {
	text := []rune(strings.Join(strings.Fields(ruleLine.ReplaceAllString(b.Plain(values), "")), " "))
	return strings.TrimSpace(string(text[:min(len(text), preheaderRunes)]))
}

func endLine(text string) string {
	if text = strings.TrimRight(text, " \t\n"); text == "" {
		return ""
	}
	return text + "\n"
}

// fill inserts values that have no markup.
func fill(segments []segment, values Values, escape func(string) string) string {
	var b strings.Builder
	for _, s := range segments {
		if s.key == "" {
			b.WriteString(s.text)
			continue
		}
		b.WriteString(escape(Format(values(s.key), false)))
	}
	return b.String()
}

// formFor returns the form in which the values can be inserted; nil if the text must be parsed.
func (b *Body) formFor(values Values) *form {
	choice := make([]byte, 0, 16)
	for _, s := range b.text.segments {
		switch {
		case !s.flag:
		case SaysYes(values(s.key)):
			choice = append(choice, '1')
		default:
			choice = append(choice, '0')
		}
	}
	b.mu.RLock()
	f, known := b.forms[string(choice)]
	full := len(b.forms) >= maxForms
	b.mu.RUnlock()
	if !known {
		if full {
			return nil
		}
		f = b.compile(choice)
		b.mu.Lock()
		b.forms[string(choice)] = f
		b.mu.Unlock()
	}
	if !f.fixed {
		return nil
	}
	for _, s := range f.html {
		if s.key != "" && !isInert(values(s.key), f.atLineStart[s.key]) {
			return nil
		}
	}
	return f
}

// compile parses the text for one choice, with words in place of the values.
func (b *Body) compile(choice []byte) *form {
	var source strings.Builder
	var at [][2]int // of the words
	next := 0
	for i, s := range b.text.segments {
		switch {
		case s.key == "":
			source.WriteString(s.text)
		case s.flag:
			if choice[next] == '1' {
				source.WriteString(s.text)
			}
			next++
		default:
			from := source.Len()
			source.WriteString(b.word + wordOf(i) + "x")
			at = append(at, [2]int{from, source.Len()})
		}
	}
	text := source.String()
	f := &form{fixed: true, atLineStart: map[string]bool{}}
	for _, w := range at {
		if !standsAlone(text[:w[0]], text[w[1]:]) {
			return &form{}
		}
	}
	doc, raw := parse(text)
	f.html, f.plain = b.cut(writeHTML(doc, raw)), b.cut(writePlain(doc, raw))
	inTag := false
	for _, s := range f.html {
		if s.key != "" {
			if inTag {
				return &form{}
			}
			continue
		}
		if i := strings.LastIndexAny(s.text, "<>"); i >= 0 {
			inTag = s.text[i] == '<'
		}
	}
	position := 0
	for _, s := range b.text.segments {
		if s.key == "" || s.flag {
			continue
		}
		line := text[strings.LastIndexByte(text[:at[position][0]], '\n')+1 : at[position][0]]
		if strings.Trim(line, " \t*•#^-+.0123456789") == "" {
			f.atLineStart[s.key] = true
		}
		position++
	}
	return f
}

// wordOf writes the number of a placeholder in hexadecimal with the digits a to p.
func wordOf(n int) string {
	word := ""
	for ; n > 0 || word == ""; n /= 16 {
		word = string(rune('a'+n%16)) + word
	}
	return word
}

// cut splits a text at the words that stand for placeholders.
func (b *Body) cut(text string) []segment {
	var segments []segment
	for {
		i := strings.Index(text, b.word)
		if i < 0 {
			return append(segments, segment{text: text})
		}
		n, end := 0, i+len(b.word)
		for ; end < len(text) && text[end] != 'x'; end++ {
			n = n*16 + int(text[end]-'a')
		}
		segments = append(segments, segment{text: text[:i]}, segment{key: b.text.segments[n].key})
		text = text[min(end+1, len(text)):]
	}
}

// standsAlone reports whether a word between the two texts is read like any other word there.
func standsAlone(before, after string) bool {
	if before != "" {
		r, _ := utf8.DecodeLastRuneInString(before)
		if !unicode.IsSpace(r) && !strings.ContainsRune(`("£[:`, r) || strings.HasSuffix(before, "](") {
			return false
		}
	}
	if after == "" {
		return true
	}
	r, n := utf8.DecodeRuneInString(after)
	if unicode.IsSpace(r) {
		return true
	}
	next, _ := utf8.DecodeRuneInString(after[n:])
	return strings.ContainsRune(`,.;:!?)"]`, r) && (len(after) == n || unicode.IsSpace(next) || r == ']')
}

// isInert reports whether a value is words and numbers only, which neither Markdown nor
// typography changes.
func isInert(value any, lineStart bool) bool {
	text, ok := value.(string)
	if !ok {
		if _, list := value.([]any); list || value == nil {
			return false
		}
		text = Format(value, false)
	}
	if text == "" {
		return false
	}
	before := rune(' ')
	for i, r := range text {
		switch {
		case unicode.IsLetter(r):
		case '0' <= r && r <= '9':
			if i == 0 && lineStart {
				return false
			}
		case r == ' ':
			if before == ' ' {
				return false
			}
		case r == '.' || r == ',' || r == ':' || r == '/':
			if before < '0' || before > '9' || !digitAt(text, i+1) {
				return false
			}
		case r == '-':
			if !unicode.IsLetter(before) && !unicode.IsDigit(before) || !alphanumericAt(text, i+1) {
				return false
			}
		default:
			return false
		}
		before = r
	}
	return before != ' '
}

func digitAt(text string, i int) bool { return i < len(text) && text[i] >= '0' && text[i] <= '9' }

func alphanumericAt(text string, i int) bool {
	r, _ := utf8.DecodeRuneInString(text[i:])
	return unicode.IsLetter(r) || '0' <= r && r <= '9'
}
