package mail

import (
	"container/list"
	"context"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/html"

	"fanfare.dev/fanfare/internal/mail/mimetree"
	"fanfare.dev/fanfare/internal/mailbox"
)

// maxPreview is the largest length of a preview in characters (RFC 8621, section 4.1.4).
const maxPreview = 256

// A digest is what lists of messages show: the header, and what follows from the body. It does not change.
type digest struct {
	header        string // of the message
	preview       string
	hasAttachment bool
}

func (d *digest) cost() int { return 200 + len(d.header) + len(d.preview) }

// newDigest makes the digest of a message.
func newDigest(message []byte, tree *mimetree.Part) *digest {
	b := bodyOf(tree)
	d := &digest{header: string(message[tree.Header.From:tree.Header.To])}
	for _, part := range b.attachments {
		if part.disposition() != "inline" {
			d.hasAttachment = true
			break
		}
	}
	for _, part := range b.text {
		if kind := part.kind(); kind == "text/plain" || kind == "text/html" {
			if d.preview = shorten(collapse(plainText(part, message)), maxPreview); d.preview != "" {
				break
			}
		}
	}
	return d
}

// maxPlainText limits the text of a part that is searched, and of which a preview is made.
const maxPlainText = 1 << 20

// plainText returns the text of a part; of HTML, without its markup.
func plainText(part *leaf, message []byte) string {
	text := mimetree.Text(part.Part, message)
	if len(text) > maxPlainText {
		text = strings.ToValidUTF8(text[:maxPlainText], "")
	}
	if part.kind() == "text/html" {
		return htmlText(text)
	}
	return text
}

// htmlText returns the text in HTML.
func htmlText(text string) string {
	var b strings.Builder
	hidden := ""
	z := html.NewTokenizer(strings.NewReader(text))
	z.SetMaxBuf(maxPlainText)
	for {
		switch z.Next() {
		case html.ErrorToken:
			return b.String()
		case html.TextToken:
			if hidden == "" {
				b.Write(z.Text())
			}
		case html.StartTagToken, html.SelfClosingTagToken:
			name, _ := z.TagName()
			switch tag := string(name); tag {
			case "style", "script", "title", "head":
				if hidden == "" && tag != "head" {
					hidden = tag
				}
			case "b", "i", "em", "strong", "span", "a", "u", "font", "small", "code":
			default:
				b.WriteByte(' ')
			}
		case html.EndTagToken:
			name, _ := z.TagName()
			if string(name) == hidden {
				hidden = ""
			}
		}
	}
}

// collapse replaces white space by single spaces.
func collapse(text string) string {
	return strings.Join(strings.FieldsFunc(text, func(r rune) bool {
		return unicode.IsSpace(r) || unicode.IsControl(r) || r == '\u200b' || r == '\u200c' || r == '\u034f' || r == '\ufeff' || r == '\u00ad'
	}), " ")
}

// shorten returns at most a number of characters.
func shorten(text string, most int) string {
	n := 0
	for i := range text {
		if n == most {
			return text[:i]
		}
		n++
	}
	return text
}

// Limits of the caches of digests and of searched texts, in bytes. Longer ones are not cached.
const (
	maxDigests      = 64 << 20
	maxCachedDigest = 34 << 10
	maxTexts        = 64 << 20
	maxCachedText   = 32 << 10
)

// A digestKey names a message, or the content that several have.
type digestKey struct {
	account mailbox.AccountID
	email   mailbox.EmailID
	content mailbox.ContentID
}

// A contentCache has what was computed from messages. The limits are in bytes.
type contentCache[V interface{ cost() int }] struct {
	most, mostOfOne int

	mu      sync.Mutex
	entries map[digestKey]*list.Element // of *cached[V]
	order   list.List                   // the last one was used first
	size    int
}

type cached[V any] struct {
	key   digestKey
	value V
}

func newContentCache[V interface{ cost() int }](most, mostOfOne int) *contentCache[V] {
	return &contentCache[V]{most: most, mostOfOne: mostOfOne, entries: map[digestKey]*list.Element{}}
}

func keyOf(account mailbox.AccountID, m *mailbox.Message) digestKey {
	if m.Content != 0 {
		return digestKey{content: m.Content}
	}
	return digestKey{account: account, email: m.Email}
}

func (s *contentCache[V]) get(key digestKey) (value V, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.entries[key]
	if e == nil {
		return value, false
	}
	s.order.MoveToFront(e)
	return e.Value.(*cached[V]).value, true
}

func (s *contentCache[V]) put(key digestKey, value V) {
	if value.cost() > s.mostOfOne {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.entries[key] != nil {
		return
	}
	s.entries[key] = s.order.PushFront(&cached[V]{key, value})
	s.size += value.cost()
	for s.size > s.most {
		last := s.order.Remove(s.order.Back()).(*cached[V])
		delete(s.entries, last.key)
		s.size -= last.value.cost()
	}
}

// digest returns the digest of a message of an account.
func (m *Methods) digest(ctx context.Context, account mailbox.AccountID, message *mailbox.Message) (*digest, error) {
	key := keyOf(account, message)
	if d, ok := m.messages.get(key); ok {
		return d, nil
	}
	content, err := m.store.Content(ctx, account, message.Email)
	if err != nil {
		return nil, err
	}
	d := newDigest(content, mimetree.Parse(content))
	m.messages.put(key, d)
	return d, nil
}

// validText makes a text valid UTF-8 without NUL.
func validText(text string) string {
	if utf8.ValidString(text) && !strings.Contains(text, "\x00") {
		return text
	}
	return strings.ReplaceAll(strings.ToValidUTF8(text, "\ufffd"), "\x00", "")
}
