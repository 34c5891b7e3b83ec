package mail

import (
	"context"
	"encoding/json"
	"errors"
	"html"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"fanfare.dev/fanfare/internal/jmap/core"
	"fanfare.dev/fanfare/internal/jmap/header"
	"fanfare.dev/fanfare/internal/mail/mimetree"
	"fanfare.dev/fanfare/internal/mailbox"
)

// fold returns a text as searches compare it.
func fold(text string) string { return strings.ToLower(norm.NFC.String(text)) }

// maxSearchWords limits the words of a search. Later ones are not used.
const maxSearchWords = 50

// searchWords returns the words of a search, folded. Words between quotation marks are one.
func searchWords(text string) (words []string) {
	text = fold(text)
	for text != "" && len(words) < maxSearchWords {
		text = strings.TrimLeftFunc(text, unicode.IsSpace)
		if text == "" {
			break
		}
		if mark := text[0]; mark == '"' || mark == '\'' {
			if phrase, rest, ok := strings.Cut(text[1:], string(mark)); ok && strings.TrimSpace(phrase) != "" {
				words, text = append(words, strings.Join(strings.Fields(phrase), " ")), rest
				continue
			}
		}
		end := strings.IndexFunc(text, unicode.IsSpace)
		if end < 0 {
			end = len(text)
		}
		words, text = append(words, text[:end]), text[end:]
	}
	return words
}

// containsAll reports whether a folded text has all words.
func containsAll(text string, words []string) bool {
	return !slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(text, word) })
}

// fieldsText returns the text of header fields, folded.
func fieldsText(d *digest, names []string) string {
	var b strings.Builder
	for f := range mimetree.Fields([]byte(d.header)) {
		if slices.ContainsFunc(names, func(name string) bool { return strings.EqualFold(name, f.Name) }) {
			b.WriteString(fold(fieldText(f)))
			b.WriteByte('\n')
		}
	}
	return b.String()
}

// fieldText returns the text of a field as people read it.
func fieldText(f mimetree.Field) string {
	if strings.EqualFold(f.Name, "Subject") {
		return header.Text(string(f.Value))
	}
	var b strings.Builder
	for _, a := range header.Addresses(string(f.Value)) {
		if a.Name != nil {
			b.WriteString(*a.Name + " ")
		}
		b.WriteString("<" + a.Email + "> ")
	}
	return b.String()
}

// bodyText returns the text of the parts of a message that are text.
func (m *Methods) bodyText(ctx context.Context, account mailbox.AccountID, message *mailbox.Message) (string, error) {
	content, err := m.store.Content(ctx, account, message.Email)
	if err != nil {
		return "", err
	}
	return bodyTextOf(content, mimetree.Parse(content)), nil
}

func bodyTextOf(content []byte, tree *mimetree.Part) string {
	var b strings.Builder
	for _, l := range bodyOf(tree).leaves {
		if kind := l.kind(); (kind == "text/plain" || kind == "text/html") && b.Len() < maxPlainText {
			b.WriteString(collapse(plainText(l, content)))
			b.WriteByte('\n')
		}
	}
	return b.String()
}

// SearchTexts calls add with the texts of a message that the conditions of Email/query look at.
func SearchTexts(message []byte, tree *mimetree.Part, add func(text string)) {
	for f := range mimetree.Fields(message[tree.Header.From:tree.Header.To]) {
		add(header.Text(string(f.Value)))
		add(fieldText(f))
	}
	add(bodyTextOf(message, tree))
}

func isGone(err error) bool { return errors.Is(err, mailbox.ErrNoMessage) }

// snippetArguments are those of SearchSnippet/get (RFC 8621, section 5.1).
type snippetArguments struct {
	core.InAccount
	Filter   *core.Filter `json:"filter"`
	EmailIDs *[]core.ID   `json:"emailIds"`
}

type snippet struct {
	EmailID core.ID `json:"emailId"`
	Subject *string `json:"subject"`
	Preview *string `json:"preview"`
}

// snippetGet is SearchSnippet/get.
func (m *Methods) snippetGet(ctx context.Context, c *core.Call, a *snippetArguments) (any, error) {
	if a.EmailIDs == nil {
		return nil, core.Fail(core.InvalidArguments, "the argument emailIds is missing")
	}
	if len(*a.EmailIDs) > c.Limits.MaxObjectsInGet {
		return nil, core.Fail(core.RequestTooLarge, "emailIds has more ids than maxObjectsInGet")
	}
	id, v, err := m.current(ctx, c)
	if err != nil {
		return nil, err
	}
	var inSubject, inBody []string
	q := &query{methods: m, call: c, account: id, view: v}
	err = a.Filter.Each(func(f *core.Filter) error {
		if _, err := q.condition(f.Condition); err != nil {
			return err
		}
		for _, member := range f.Condition {
			if text := strings.Trim(string(member.Value), " "); strings.HasPrefix(text, `"`) {
				words := searchWords(unquote(member.Value))
				switch member.Name {
				case "text":
					inSubject, inBody = append(inSubject, words...), append(inBody, words...)
				case "subject":
					inSubject = append(inSubject, words...)
				case "body":
					inBody = append(inBody, words...)
				}
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	list, notFound := []snippet{}, []core.ID{}
	for _, name := range *a.EmailIDs {
		n, _ := parseEmailID(name)
		message := v.message(n)
		if message == nil {
			notFound = append(notFound, name)
			continue
		}
		d, err := m.digest(ctx, id, message)
		if err != nil {
			return nil, err
		}
		s := snippet{EmailID: name, Subject: mark(header.Text(lastField(d, "Subject")), inSubject, 0)}
		if len(inBody) > 0 {
			text, err := m.bodyText(ctx, id, message)
			if err != nil {
				return nil, err
			}
			s.Preview = mark(collapse(text), inBody, maxSnippet)
		}
		list = append(list, s)
	}
	var missing any
	if len(notFound) > 0 {
		missing = notFound
	}
	return map[string]any{"accountId": a.AccountID, "list": list, "notFound": missing}, nil
}

// maxSnippet is the largest length of a snippet in octets (section 5).
const maxSnippet = 255

// mark returns a text as HTML with the words between <mark> and </mark>, or nil if it has none of them. With a limit, it returns the part of
// the text around the first word.
func mark(text string, words []string, most int) *string {
	text = norm.NFC.String(text)
	lower, places := lowered(text)
	type span struct{ from, to int }
	var found []span
	for _, word := range words {
		for at := 0; ; {
			i := strings.Index(lower[at:], word)
			if i < 0 || word == "" {
				break
			}
			found = append(found, span{places[at+i], places[at+i+len(word)]})
			at += i + len(word)
		}
	}
	if len(found) == 0 {
		return nil
	}
	slices.SortFunc(found, func(a, b span) int { return a.from - b.from })
	begin := 0
	if most > 0 {
		begin = max(0, found[0].from-60)
		for begin > 0 && !utf8.RuneStart(text[begin]) {
			begin--
		}
	}
	var b strings.Builder
	put := func(piece string) bool {
		for _, r := range piece {
			one := html.EscapeString(string(r))
			if most > 0 && b.Len()+len(one)+len("</mark>") > most {
				return false
			}
			b.WriteString(one)
		}
		return true
	}
	at := begin
	for _, s := range found {
		if s.from < at {
			continue
		}
		if !put(text[at:s.from]) || most > 0 && b.Len()+len("<mark></mark>")+s.to-s.from > most {
			at = -1
			break
		}
		b.WriteString("<mark>")
		complete := put(text[s.from:s.to])
		b.WriteString("</mark>")
		if at = s.to; !complete {
			at = -1
			break
		}
	}
	if at >= 0 {
		put(text[at:])
	}
	marked := b.String()
	return &marked
}

// lowered returns a text in lower case, and for each byte of it the place in the text.
func lowered(text string) (lower string, places []int) {
	var b strings.Builder
	for i, r := range text {
		l := strings.ToLower(string(r))
		b.WriteString(l)
		for range len(l) {
			places = append(places, i)
		}
	}
	return b.String(), append(places, len(text))
}

// unquote returns the text of a JSON string.
func unquote(value json.RawMessage) (text string) {
	if json.Unmarshal(value, &text) != nil {
		return ""
	}
	return text
}
