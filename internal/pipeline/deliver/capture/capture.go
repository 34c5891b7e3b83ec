// Package capture keeps messages in the house: what would leave by a channel goes
// to a capture server, or into a folder, instead. It is for staging, where the
// people in the data are real and must not hear of it.
//
// State. None but the messages in hand.
//
// Failure. A capture server that cannot be reached is a relay that is down:
// messages wait. None of them leaves by the channel's own way for that.
package capture

import (
	"context"
	"encoding/base64"
	"net/url"
	"slices"
	"strings"
	"sync"

	"fanfare.dev/fanfare/internal/pipeline/deliver/driver"
)

// Header says in a captured message by which channel it would have left.
const Header = "X-Fanfare-Captured"

// A Driver sends to a capture server, or into a folder, what may not leave.
type Driver struct {
	channel string
	to      driver.Driver
	own     driver.Driver // of the channel; nil: nothing leaves
	allow   Allow
}

// New returns a driver for a channel by which nothing leaves: all goes to the
// driver to.
func New(channel string, to driver.Driver) *Driver { return &Driver{channel: channel, to: to} }

// NewSelective returns a driver for a channel by which messages to the allowed leave for
// real, and all others go to the driver to.
func NewSelective(channel string, own, to driver.Driver, allow Allow) *Driver {
	return &Driver{channel: channel, to: to, own: own, allow: allow}
}

// Serve is one connection: at a time to one of the two. It changes over where the
// next message is for the other one.
func (d *Driver) Serve(ctx context.Context, queue driver.Queue) error {
	if d.own == nil {
		return d.to.Serve(ctx, d.capture(queue))
	}
	for {
		message, err := queue.Next(ctx, true)
		if message == nil {
			return err
		}
		t := &routedQueue{Queue: queue, first: message, allowed: d.allow.Has}
		if t.direct = d.allow.Has(message.To); t.direct {
			err = d.own.Serve(ctx, t)
		} else {
			err = d.to.Serve(ctx, d.capture(t))
		}
		if left := t.take(); left != nil {
			queue.Return(left)
		}
		if err != nil || ctx.Err() != nil {
			return err
		}
	}
}

// A turn is a queue that hands out messages for one of the two ways, and ends with
// the first one for the other.
type routedQueue struct {
	driver.Queue
	direct  bool
	allowed func(to string) bool

	mu    sync.Mutex
	first *driver.Message
	done  bool
}

func (t *routedQueue) take() *driver.Message {
	t.mu.Lock()
	defer t.mu.Unlock()
	message := t.first
	t.first = nil
	return message
}

// Next returns the next message for this way, none when the turn is over.
func (t *routedQueue) Next(ctx context.Context, wait bool) (*driver.Message, error) {
	if message := t.take(); message != nil {
		return message, nil
	}
	t.mu.Lock()
	over := t.done
	t.mu.Unlock()
	if over {
		return nil, nil
	}
	message, err := t.Queue.Next(ctx, wait)
	if message == nil || t.allowed(message.To) == t.direct {
		return message, err
	}
	t.mu.Lock()
	t.done = true
	t.mu.Unlock()
	t.Return(message)
	return nil, nil
}

// TakeSameContent returns no further message, since some may be for the other way.
func (*routedQueue) TakeSameContent(dst []*driver.Message, _ *driver.Message, _ int) []*driver.Message {
	return dst
}

// captureQueue is a queue whose messages say that they were captured.
type captureQueue struct {
	driver.Queue
	channel string

	mu        sync.Mutex
	originals map[*driver.Message]*driver.Message // what a marked message was
}

func (d *Driver) capture(queue driver.Queue) *captureQueue {
	return &captureQueue{Queue: queue, channel: d.channel, originals: map[*driver.Message]*driver.Message{}}
}

// Next returns the next message, marked.
func (m *captureQueue) Next(ctx context.Context, wait bool) (*driver.Message, error) {
	message, err := m.Queue.Next(ctx, wait)
	if message == nil {
		return nil, err
	}
	marked := *message
	if strings.Contains(message.To, "://") {
		asMail(&marked)
	}
	marked.Body = append([]byte(Header+": "+m.channel+"\r\n"), marked.Body...)
	m.mu.Lock()
	m.originals[&marked] = message
	m.mu.Unlock()
	return &marked, nil
}

func (m *captureQueue) original(marked *driver.Message) *driver.Message {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.originals[marked]
}

func (m *captureQueue) release(marked *driver.Message) *driver.Message {
	m.mu.Lock()
	defer m.mu.Unlock()
	message := m.originals[marked]
	delete(m.originals, marked)
	return message
}

// Release asks for the message as it was.
func (m *captureQueue) Release(marked *driver.Message) bool {
	if m.Queue.Release(m.original(marked)) {
		return true
	}
	m.release(marked)
	return false
}

// ReleaseAll asks for the messages as they were.
func (m *captureQueue) ReleaseAll(marked []*driver.Message) (left []*driver.Message, released bool) {
	originals := make([]*driver.Message, len(marked))
	for i, message := range marked {
		originals[i] = m.original(message)
	}
	kept, released := m.Queue.ReleaseAll(originals)
	for i, message := range marked {
		if slices.Contains(kept, originals[i]) {
			left = append(left, message)
		} else {
			m.release(message)
		}
	}
	return left, released
}

// ReportAll passes on the outcomes of the messages as they were.
func (m *captureQueue) ReportAll(marked []*driver.Message, outcomes []driver.Outcome) error {
	originals := make([]*driver.Message, len(marked))
	for i, message := range marked {
		originals[i] = m.release(message)
	}
	return m.Queue.ReportAll(originals, outcomes)
}

// TakeSameContent returns no further message: each marked message is sent by itself.
func (*captureQueue) TakeSameContent(dst []*driver.Message, _ *driver.Message, _ int) []*driver.Message {
	return dst
}

// Failover reports that there is no other capture server.
func (*captureQueue) Failover(*driver.Message, driver.Outcome) bool { return false }

// Report tells of the message as it was.
func (m *captureQueue) Report(marked *driver.Message, outcome driver.Outcome) error {
	return m.Queue.Report(m.release(marked), outcome)
}

// Return gives the message back as it was.
func (m *captureQueue) Return(marked *driver.Message) { m.Queue.Return(m.release(marked)) }

// placeholderAddress is whom a captured webhook is addressed to.
const placeholderAddress = "captured@localhost"

// maxSubject is how long the subject of a captured webhook is at most. Its line has
// to stay within 998 bytes (RFC 5322, section 2.1.1), and a URL has no place to fold.
const maxSubject = 900

func truncate(text string, most int) string {
	if len(text) <= most {
		return text
	}
	const more = "..."
	return strings.ToValidUTF8(text[:most-len(more)], "") + more
}

// asMail makes a mail of a webhook: its document is the body.
func asMail(message *driver.Message) {
	var b strings.Builder
	b.WriteString("From: " + placeholderAddress + "\r\nTo: " + placeholderAddress + "\r\nSubject: " + truncate("POST "+message.To, maxSubject) +
		"\r\nMIME-Version: 1.0\r\nContent-Type: application/json\r\nContent-Transfer-Encoding: base64\r\n\r\n")
	const line = 57 // bytes that make 76 characters (RFC 2045, section 6.8)
	for body := message.Body; len(body) > 0; {
		n := min(line, len(body))
		b.WriteString(base64.StdEncoding.EncodeToString(body[:n]) + "\r\n")
		body = body[n:]
	}
	message.From, message.To, message.Body = placeholderAddress, placeholderAddress, []byte(b.String())
	message.UTF8, message.EightBit = false, false
}

// Allow is to whom messages may leave for real: addresses, domains written as
// @example.org, and hosts of webhooks. The zero Allow has nobody.
type Allow map[string]bool

// NewAllow returns the list as it is configured.
func NewAllow(list []string) Allow {
	all := Allow{}
	for _, one := range list {
		all[strings.ToLower(one)] = true
	}
	return all
}

// Has reports whether a message to an address may leave.
func (a Allow) Has(to string) bool {
	to = strings.ToLower(to)
	if strings.Contains(to, "://") {
		u, err := url.Parse(to)
		return err == nil && u.Hostname() != "" && (a[u.Hostname()] || a[u.Host])
	}
	at := strings.LastIndexByte(to, '@')
	return at >= 0 && (a[to] || a[to[at:]])
}
