// Package capture sends the messages of a channel to a capture server, or into a folder,
// instead of to their recipients. It is for staging environments, whose data contains real
// people who must not receive messages. Package channels wraps the driver of a channel in it,
// and package
// deliver calls Serve.
//
// State. Only the messages that the connection holds.
//
// Failure. A capture server that cannot be reached counts as a relay that is down: messages
// wait, and the channel's own driver sends none of them.
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

// Header is the header field with the channel of a captured message.
const Header = "X-Fanfare-Captured"

// A Driver captures messages, except for allowed recipients.
type Driver struct {
	channel string
	to      driver.Driver
	own     driver.Driver // of the channel; nil: all messages are captured
	allow   Allow
}

// New returns a driver that sends all messages of a channel to the driver to.
func New(channel string, to driver.Driver) *Driver { return &Driver{channel: channel, to: to} }

// NewSelective returns a driver that sends messages to allowed recipients with the
// channel's own driver, and all others to the driver to.
func NewSelective(channel string, own, to driver.Driver, allow Allow) *Driver {
	return &Driver{channel: channel, to: to, own: own, allow: allow}
}

// Serve is one connection, either of the own driver or of the capture driver. It changes
// when the next message needs the other one.
func (d *Driver) Serve(ctx context.Context, queue driver.Queue) error {
	if d.own == nil {
		return d.to.Serve(ctx, d.capture(queue))
	}
	for {
		message, err := queue.Next(ctx, true)
		if message == nil {
			return err
		}
		q := &routedQueue{Queue: queue, first: message, allowed: d.allow.Has}
		if q.direct = d.allow.Has(message.To); q.direct {
			err = d.own.Serve(ctx, q)
		} else {
			err = d.to.Serve(ctx, d.capture(q))
		}
		if left := q.take(); left != nil {
			queue.Return(left)
		}
		if err != nil || ctx.Err() != nil {
			return err
		}
	}
}

// A routedQueue hands out messages for one of the two drivers, and ends at the first
// message for the other one.
type routedQueue struct {
	driver.Queue
	direct  bool
	allowed func(to string) bool

	mu    sync.Mutex
	first *driver.Message
	done  bool
}

func (q *routedQueue) take() *driver.Message {
	q.mu.Lock()
	defer q.mu.Unlock()
	message := q.first
	q.first = nil
	return message
}

// Next returns the next message for this driver, or nil at the first message for the other
// one.
func (q *routedQueue) Next(ctx context.Context, wait bool) (*driver.Message, error) {
	if message := q.take(); message != nil {
		return message, nil
	}
	q.mu.Lock()
	over := q.done
	q.mu.Unlock()
	if over {
		return nil, nil
	}
	message, err := q.Queue.Next(ctx, wait)
	if message == nil || q.allowed(message.To) == q.direct {
		return message, err
	}
	q.mu.Lock()
	q.done = true
	q.mu.Unlock()
	q.Return(message)
	return nil, nil
}

// TakeSameContent returns no further message, since some may be for the other driver.
func (*routedQueue) TakeSameContent(dst []*driver.Message, _ *driver.Message, _ int) []*driver.Message {
	return dst
}

// captureQueue adds the header to messages.
type captureQueue struct {
	driver.Queue
	channel string

	mu        sync.Mutex
	originals map[*driver.Message]*driver.Message // by their copy with the header
}

func (d *Driver) capture(queue driver.Queue) *captureQueue {
	return &captureQueue{Queue: queue, channel: d.channel, originals: map[*driver.Message]*driver.Message{}}
}

// Next returns the next message with the header.
func (q *captureQueue) Next(ctx context.Context, wait bool) (*driver.Message, error) {
	message, err := q.Queue.Next(ctx, wait)
	if message == nil {
		return nil, err
	}
	marked := *message
	if strings.Contains(message.To, "://") {
		asMail(&marked)
	}
	marked.Body = append([]byte(Header+": "+q.channel+"\r\n"), marked.Body...)
	q.mu.Lock()
	q.originals[&marked] = message
	q.mu.Unlock()
	return &marked, nil
}

func (q *captureQueue) original(marked *driver.Message) *driver.Message {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.originals[marked]
}

func (q *captureQueue) release(marked *driver.Message) *driver.Message {
	q.mu.Lock()
	defer q.mu.Unlock()
	message := q.originals[marked]
	delete(q.originals, marked)
	return message
}

// Release releases the original.
func (q *captureQueue) Release(marked *driver.Message) bool {
	if q.Queue.Release(q.original(marked)) {
		return true
	}
	q.release(marked)
	return false
}

// ReleaseAll releases the originals.
func (q *captureQueue) ReleaseAll(marked []*driver.Message) (left []*driver.Message, released bool) {
	originals := make([]*driver.Message, len(marked))
	for i, message := range marked {
		originals[i] = q.original(message)
	}
	kept, released := q.Queue.ReleaseAll(originals)
	for i, message := range marked {
		if slices.Contains(kept, originals[i]) {
			left = append(left, message)
		} else {
			q.release(message)
		}
	}
	return left, released
}

// ReportAll reports the originals.
func (q *captureQueue) ReportAll(marked []*driver.Message, outcomes []driver.Outcome) error {
	originals := make([]*driver.Message, len(marked))
	for i, message := range marked {
		originals[i] = q.release(message)
	}
	return q.Queue.ReportAll(originals, outcomes)
}

// TakeSameContent returns no further message: each captured message is sent separately.
func (*captureQueue) TakeSameContent(dst []*driver.Message, _ *driver.Message, _ int) []*driver.Message {
	return dst
}

// Failover reports that there is no other capture server.
func (*captureQueue) Failover(*driver.Message, driver.Outcome) bool { return false }

// Report reports the original.
func (q *captureQueue) Report(marked *driver.Message, outcome driver.Outcome) error {
	return q.Queue.Report(q.release(marked), outcome)
}

// Return returns the original.
func (q *captureQueue) Return(marked *driver.Message) { q.Queue.Return(q.release(marked)) }

// PlaceholderAddress is the recipient of captured webhooks.
const PlaceholderAddress = "captured@localhost"

// maxSubject is the maximum length of the subject of a captured webhook. The line must not
// exceed 998 bytes (RFC 5322, section 2.1.1), and a URL cannot be folded.
const maxSubject = 900

func truncate(text string, most int) string {
	if len(text) <= most {
		return text
	}
	const more = "..."
	return strings.ToValidUTF8(text[:most-len(more)], "") + more
}

// asMail turns a webhook into a mail whose body is the document.
func asMail(message *driver.Message) {
	var b strings.Builder
	b.WriteString("From: " + PlaceholderAddress + "\r\nTo: " + PlaceholderAddress + "\r\nSubject: " + truncate("POST "+message.To, maxSubject) +
		"\r\nMIME-Version: 1.0\r\nContent-Type: application/json\r\nContent-Transfer-Encoding: base64\r\n\r\n")
	const line = 57 // bytes that make 76 characters (RFC 2045, section 6.8)
	for body := message.Body; len(body) > 0; {
		n := min(line, len(body))
		b.WriteString(base64.StdEncoding.EncodeToString(body[:n]) + "\r\n")
		body = body[n:]
	}
	message.From, message.To, message.Body = PlaceholderAddress, PlaceholderAddress, []byte(b.String())
	message.UTF8, message.EightBit = false, false
}

// Allow is the set of real recipients: addresses, domains written as @example.org, and
// hosts of webhooks. The zero Allow is empty.
type Allow map[string]bool

// NewAllow returns the set for a configured list.
func NewAllow(list []string) Allow {
	all := Allow{}
	for _, one := range list {
		all[strings.ToLower(one)] = true
	}
	return all
}

// Has reports whether an address is in the set.
func (a Allow) Has(to string) bool {
	to = strings.ToLower(to)
	if strings.Contains(to, "://") {
		u, err := url.Parse(to)
		return err == nil && u.Hostname() != "" && (a[u.Hostname()] || a[u.Host])
	}
	at := strings.LastIndexByte(to, '@')
	return at >= 0 && (a[to] || a[to[at:]])
}
