// Package capture keeps letters in the house: what would leave by a channel goes
// to a capture server, or into a folder, instead. It is for staging, where the
// people in the data are real and must not hear of it.
//
// State. None but the letters in hand.
//
// Failure. A capture server that cannot be reached is a relay that is down:
// letters wait. None of them leaves by the channel's own way for that.
package capture

import (
	"context"
	"encoding/base64"
	"strings"
	"sync"

	"fanfare.dev/fanfare"
)

// Header says in a captured letter by which channel it would have left.
const Header = "X-Fanfare-Captured"

// A Driver sends to a capture server, or into a folder, what may not leave.
type Driver struct {
	channel string
	to      fanfare.Driver
	own     fanfare.Driver // of the channel; nil: nothing leaves
	allow   Allow
}

// New returns a driver for a channel by which nothing leaves: all goes to the
// driver to.
func New(channel string, to fanfare.Driver) *Driver { return &Driver{channel: channel, to: to} }

// Beside returns a driver for a channel by which letters to the allowed leave for
// real, and all others go to the driver to.
func Beside(channel string, own, to fanfare.Driver, allow Allow) *Driver {
	return &Driver{channel: channel, to: to, own: own, allow: allow}
}

// Serve is one connection: at a time to one of the two. It changes over where the
// next letter is for the other one.
func (d *Driver) Serve(ctx context.Context, desk fanfare.Desk) error {
	if d.own == nil {
		return d.to.Serve(ctx, d.mark(desk))
	}
	for {
		letter, err := desk.Next(ctx, true)
		if letter == nil {
			return err
		}
		t := &turn{Desk: desk, first: letter, leaves: d.allow.Has}
		if t.real = d.allow.Has(letter.To); t.real {
			err = d.own.Serve(ctx, t)
		} else {
			err = d.to.Serve(ctx, d.mark(t))
		}
		if left := t.take(); left != nil {
			desk.Return(left)
		}
		if err != nil || ctx.Err() != nil {
			return err
		}
	}
}

// A turn is a desk that hands out letters for one of the two ways, and ends with
// the first one for the other.
type turn struct {
	fanfare.Desk
	real   bool
	leaves func(to string) bool

	mu    sync.Mutex
	first *fanfare.Letter
	over  bool
}

func (t *turn) take() *fanfare.Letter {
	t.mu.Lock()
	defer t.mu.Unlock()
	letter := t.first
	t.first = nil
	return letter
}

// Next returns the next letter for this way, none when the turn is over.
func (t *turn) Next(ctx context.Context, wait bool) (*fanfare.Letter, error) {
	if letter := t.take(); letter != nil {
		return letter, nil
	}
	t.mu.Lock()
	over := t.over
	t.mu.Unlock()
	if over {
		return nil, nil
	}
	letter, err := t.Desk.Next(ctx, wait)
	if letter == nil || t.leaves(letter.To) == t.real {
		return letter, err
	}
	t.mu.Lock()
	t.over = true
	t.mu.Unlock()
	t.Return(letter)
	return nil, nil
}

// marking is a desk whose letters say that they were captured.
type marking struct {
	fanfare.Desk
	channel string

	mu  sync.Mutex
	was map[*fanfare.Letter]*fanfare.Letter // what a marked letter was
}

func (d *Driver) mark(desk fanfare.Desk) *marking {
	return &marking{Desk: desk, channel: d.channel, was: map[*fanfare.Letter]*fanfare.Letter{}}
}

// Next returns the next letter, marked.
func (m *marking) Next(ctx context.Context, wait bool) (*fanfare.Letter, error) {
	letter, err := m.Desk.Next(ctx, wait)
	if letter == nil {
		return nil, err
	}
	marked := *letter
	if strings.Contains(letter.To, "://") {
		asMail(&marked)
	}
	marked.Body = append([]byte(Header+": "+m.channel+"\r\n"), marked.Body...)
	m.mu.Lock()
	m.was[&marked] = letter
	m.mu.Unlock()
	return &marked, nil
}

func (m *marking) original(marked *fanfare.Letter) *fanfare.Letter {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.was[marked]
}

func (m *marking) forget(marked *fanfare.Letter) *fanfare.Letter {
	m.mu.Lock()
	defer m.mu.Unlock()
	letter := m.was[marked]
	delete(m.was, marked)
	return letter
}

// Release asks for the letter as it was.
func (m *marking) Release(marked *fanfare.Letter) bool {
	if m.Desk.Release(m.original(marked)) {
		return true
	}
	m.forget(marked)
	return false
}

// Report tells of the letter as it was.
func (m *marking) Report(marked *fanfare.Letter, outcome fanfare.Outcome) error {
	return m.Desk.Report(m.forget(marked), outcome)
}

// Return gives the letter back as it was.
func (m *marking) Return(marked *fanfare.Letter) { m.Desk.Return(m.forget(marked)) }

// whoever is whom a captured webhook is addressed to.
const whoever = "captured@localhost"

// maxSubject is how long the subject of a captured webhook is at most. Its line has
// to stay within 998 bytes (RFC 5322, section 2.1.1), and a URL has no place to fold.
const maxSubject = 900

func cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	const more = "..."
	return strings.ToValidUTF8(text[:most-len(more)], "") + more
}

// asMail makes a mail of a webhook: its document is the body.
func asMail(letter *fanfare.Letter) {
	var b strings.Builder
	b.WriteString("From: " + whoever + "\r\nTo: " + whoever + "\r\nSubject: " + cut("POST "+letter.To, maxSubject) +
		"\r\nMIME-Version: 1.0\r\nContent-Type: application/json\r\nContent-Transfer-Encoding: base64\r\n\r\n")
	const line = 57 // bytes that make 76 characters (RFC 2045, section 6.8)
	for body := letter.Body; len(body) > 0; {
		n := min(line, len(body))
		b.WriteString(base64.StdEncoding.EncodeToString(body[:n]) + "\r\n")
		body = body[n:]
	}
	letter.From, letter.To, letter.Body = whoever, whoever, []byte(b.String())
	letter.UTF8, letter.EightBit = false, false
}
