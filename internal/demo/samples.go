package demo

import (
	"bytes"
	"errors"
	"io"
	"maps"
	"mime"
	"mime/multipart"
	"mime/quotedprintable"
	"net/mail"
	"slices"
	"strings"
	"sync"
)

// Samples are the mails of a few people, one of which is shown.
type samples struct {
	near string // beginning of the subject of a mail that is worth showing

	mu   sync.Mutex
	mail map[string][][]byte // by address
}

// watched begins the addresses of the first hundred people.
const watched = "person0000"

func newSamples(near string) *samples { return &samples{near: near, mail: map[string][][]byte{}} }

// see receives each mail that the capture server accepts.
func (l *samples) see(_ string, to []string, body []byte) {
	for _, address := range to {
		if strings.HasPrefix(address, watched) {
			l.mu.Lock()
			l.mail[address] = append(l.mail[address], bytes.Clone(body))
			l.mu.Unlock()
		}
	}
}

// pick selects a person with two to four mails, one of which is worth showing, and that mail. If
// there is none, it selects any person and mail.
func (l *samples) pick() (address string, message []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, a := range slices.Sorted(maps.Keys(l.mail)) {
		all := l.mail[a]
		if address == "" {
			address, message = a, all[0]
		}
		if len(all) < 2 || len(all) > 4 {
			continue
		}
		near := slices.IndexFunc(all, func(m []byte) bool { return bytes.Contains(m, []byte("\r\nSubject: "+l.near)) })
		if near >= 0 {
			return a, all[near]
		}
	}
	return address, message
}

// A sample is a mail as its recipient sees it.
type sample struct {
	header [][2]string // names and values, decoded
	text   string
}

// open decodes the visible headers and the text part.
func open(message []byte) (sample, error) {
	var l sample
	if len(message) == 0 {
		return l, errors.New("none of the first hundred recipients received a message")
	}
	m, err := mail.ReadMessage(bytes.NewReader(message))
	if err != nil {
		return l, err
	}
	var words mime.WordDecoder
	for _, name := range []string{"From", "To", "Subject", "Date"} {
		value, err := words.DecodeHeader(m.Header.Get(name))
		if err != nil {
			return l, err
		}
		l.header = append(l.header, [2]string{name, value})
	}
	kind, params, err := mime.ParseMediaType(m.Header.Get("Content-Type"))
	if err != nil {
		return l, err
	}
	if !strings.HasPrefix(kind, "multipart/") {
		l.text, err = plain(m.Body, m.Header.Get("Content-Transfer-Encoding"))
		return l, err
	}
	for parts := multipart.NewReader(m.Body, params["boundary"]); ; {
		part, err := parts.NextRawPart()
		if err != nil {
			return l, err // io.EOF if the mail has no text
		}
		if strings.HasPrefix(part.Header.Get("Content-Type"), "text/plain") {
			l.text, err = plain(part, part.Header.Get("Content-Transfer-Encoding"))
			return l, err
		}
	}
}

func plain(body io.Reader, encoding string) (string, error) {
	if strings.EqualFold(encoding, "quoted-printable") {
		body = quotedprintable.NewReader(body)
	}
	text, err := io.ReadAll(body)
	return strings.TrimSpace(strings.ReplaceAll(string(text), "\r\n", "\n")), err
}
