// Package worker is the driver that passes messages to a worker: a program in any language that implements a delivery protocol.
// Package channels creates the drivers, and package deliver calls Serve.
//
// A request has the waiting messages of a connection, at most Batch of them:
//
//	{"service": "acme", "channel": "sms", "messages": [
//	  {"id": "dlv-20261120-40-0", "to": "https://...", "document": {...}},          a channel for URLs
//	  {"id": "dlv-20261120-40-1", "to": "a@example.org", "from": "...", "mail": "..."}]}   a channel for mail addresses
//
// The response has a result for each message, by id:
//
//	{"results": [{"id": "dlv-20261120-40-0", "status": "accepted", "code": 250, "text": "queued as 17"},
//	             {"id": "dlv-20261120-40-1", "status": "retry", "text": "busy", "retry_after": 30}]}
//
// State. Only the messages that a connection holds.
//
// Failure. A worker gets a message again, with the same id, if its answer was lost or could not be recorded. It must recognize
// the id if it must not deliver twice. A fault of the worker, or a message without a result, is a temporary failure of all
// messages concerned.
package worker

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"
	"unicode/utf8"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/pipeline/deliver/driver"
)

// Config is the configuration of a Driver.
type Config struct {
	Service, Channel string
	Worker           string
	Documents        bool          // messages are JSON documents; else they are mails
	Batch            int           // messages in a request, at most
	MaxBytes         int           // of a request
	Timeout          time.Duration // for the answer to a request
	// Ready returns an error if no instance of the worker is connected.
	Ready func() error
	// Call returns the response to a request. It returns a *Fault if the worker failed.
	Call func(ctx context.Context, request []byte) ([]byte, error)
}

// A Fault is the answer of a worker that failed with a whole request.
type Fault struct{ Message string }

func (f *Fault) Error() string { return f.Message }

// A Driver passes messages to a worker. It is safe for concurrent use; each call of Serve has one request at a time.
type Driver struct{ config Config }

var _ driver.Driver = (*Driver)(nil)

// New returns a driver.
func New(config Config) *Driver { return &Driver{config} }

// Serve passes messages on until the queue has no more or ctx ends; see driver.Driver.
func (d *Driver) Serve(ctx context.Context, queue driver.Queue) error {
	if err := d.config.Ready(); err != nil {
		return err
	}
	var next *driver.Message // taken, but too large for the last request
	for {
		messages, bodies, left, err := d.take(ctx, queue, next)
		next = left
		if err == nil {
			err = d.deliver(ctx, queue, messages, bodies)
		} else {
			giveBack(queue, messages)
		}
		if err != nil || ctx.Err() != nil || len(messages) == 0 && next == nil {
			if next != nil {
				queue.Return(next)
			}
			return err
		}
	}
}

// head is the part of a request before its messages.
type head struct {
	Service string `json:"service"`
	Channel string `json:"channel"`
}

// A message is a message in a request.
type message struct {
	ID       string          `json:"id"`
	To       string          `json:"to"`
	From     string          `json:"from,omitempty"`
	Document json.RawMessage `json:"document,omitempty"`
	Mail     string          `json:"mail,omitempty"`
	Bytes    []byte          `json:"mail_base64,omitempty"` // instead of Mail, if it is not valid UTF-8
}

// take takes a message, which is first if it is not nil, and the waiting ones that fit into one request with it. It returns
// the bodies of the messages, and the message that did not fit.
func (d *Driver) take(ctx context.Context, queue driver.Queue, first *driver.Message) (messages []*driver.Message, bodies [][]byte, left *driver.Message, err error) {
	size := 0
	for len(messages) < d.config.Batch {
		m := first
		first = nil
		if m == nil {
			if m, err = queue.Next(ctx, len(messages) == 0); m == nil || err != nil {
				return messages, bodies, nil, err
			}
		}
		body, err := d.encode(m)
		if err == nil && len(body) > d.maxMessage() {
			err = fmt.Errorf("the message has %d bytes, but worker %s accepts requests of at most %d bytes: raise its message_limit", len(body), d.config.Worker, d.config.MaxBytes)
		}
		if err != nil {
			if err := refuse(queue, m, d.config.Worker, err); err != nil {
				return messages, bodies, nil, err
			}
			continue
		}
		if len(messages) > 0 && size+len(body) > d.maxMessage() {
			return messages, bodies, m, nil
		}
		messages, bodies, size = append(messages, m), append(bodies, body), size+len(body)+1
	}
	return messages, bodies, nil, nil
}

// headBytes is the reserve for the part of a request that is not messages.
const headBytes = 512

func (d *Driver) maxMessage() int { return d.config.MaxBytes - headBytes }

func (d *Driver) encode(m *driver.Message) ([]byte, error) {
	out := message{ID: m.Delivery.String(), To: m.To, From: m.From}
	whole := m.Body
	if len(m.Attachments) > 0 {
		whole = append(bytes.Clone(m.Body), m.Attachments...)
	}
	switch {
	case d.config.Documents:
		out.Document = whole
	case utf8.Valid(whole):
		out.Mail = string(whole)
	default:
		out.Bytes = whole
	}
	return json.Marshal(&out)
}

// refuse reports a message that the worker cannot get.
func refuse(queue driver.Queue, m *driver.Message, worker string, why error) error {
	if !queue.Release(m) {
		return nil
	}
	return queue.Report(m, driver.Outcome{Verdict: driver.Permanent, Text: line(why.Error()), Relay: worker, Class: fanfare.ClassInvalid, At: now()})
}

func giveBack(queue driver.Queue, messages []*driver.Message) {
	for i := len(messages) - 1; i >= 0; i-- { // so that the first one is at the front
		queue.Return(messages[i])
	}
}

// deliver passes messages to the worker in one request, and reports their outcomes.
func (d *Driver) deliver(ctx context.Context, queue driver.Queue, messages []*driver.Message, bodies [][]byte) error {
	all := messages
	for len(messages) > 0 {
		left, released := queue.ReleaseAll(messages)
		messages = left
		if released {
			break
		}
	}
	if len(messages) == 0 {
		return nil
	}
	request, err := d.request(all, messages, bodies)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), d.config.Timeout) // a request that has begun is finished
	defer cancel()
	response, err := d.config.Call(ctx, request)
	outcomes := d.outcomes(messages, response, err)
	if err := queue.ReportAll(messages, outcomes); err != nil {
		return fmt.Errorf("cannot record the outcomes: %w", err)
	}
	if fault := (*Fault)(nil); err != nil && !errors.As(err, &fault) {
		return fmt.Errorf("worker %s: %w", d.config.Worker, err)
	}
	return nil
}

// request encodes the released ones of all messages.
func (d *Driver) request(all, released []*driver.Message, bodies [][]byte) ([]byte, error) {
	b, err := json.Marshal(head{d.config.Service, d.config.Channel})
	if err != nil {
		return nil, err
	}
	b = append(b[:len(b)-1], `,"messages":[`...)
	kept := make(map[*driver.Message]bool, len(released))
	for _, m := range released {
		kept[m] = true
	}
	for i, m := range all {
		if kept[m] {
			b = append(append(b, bodies[i]...), ',')
		}
	}
	return append(b[:len(b)-1], "]}"...), nil
}

// A result is the result of a message in a response.
type result struct {
	ID         string  `json:"id"`
	Status     string  `json:"status"` // accepted, retry or failed
	Code       int     `json:"code"`
	Text       string  `json:"text"`
	RetryAfter float64 `json:"retry_after"` // seconds
}

// outcomes returns the outcome of each message: from its result, or from the error of the call.
func (d *Driver) outcomes(messages []*driver.Message, response []byte, err error) []driver.Outcome {
	all := make([]driver.Outcome, len(messages))
	fill := func(verdict driver.Verdict, text string) {
		for i := range all {
			all[i] = driver.Outcome{Verdict: verdict, Text: line(text), Relay: d.config.Worker, At: now()}
		}
	}
	if err != nil {
		verdict := driver.Lost
		if fault := (*Fault)(nil); errors.As(err, &fault) {
			verdict = driver.Temporary
		}
		fill(verdict, err.Error())
		return all
	}
	var in struct {
		Results []result `json:"results"`
	}
	if err := json.Unmarshal(response, &in); err != nil {
		fill(driver.Temporary, "the response of the worker is not valid: "+err.Error())
		return all
	}
	fill(driver.Temporary, "the response of the worker has no result for the message")
	at := make(map[string]int, len(messages))
	for i, m := range messages {
		at[m.Delivery.String()] = i
	}
	for i := range in.Results {
		r := &in.Results[i]
		if at, known := at[r.ID]; known {
			r.set(&all[at])
		}
	}
	return all
}

// maxRetryAfter bounds the pause that a worker can ask for.
const maxRetryAfter = 24 * time.Hour

func (r *result) set(o *driver.Outcome) {
	o.Text, o.Code = line(r.Text), r.Code
	switch r.Status {
	case "accepted":
		o.Verdict = driver.Accepted
	case "failed":
		o.Verdict = driver.Permanent
	case "retry":
		o.Verdict = driver.Temporary
		if r.RetryAfter > 0 {
			o.RetryAfter = time.Duration(min(r.RetryAfter, maxRetryAfter.Seconds()) * float64(time.Second))
		}
	default:
		o.Text = line(fmt.Sprintf("the worker returned the status %q: use accepted, retry or failed", r.Status))
	}
}

func line(text string) string {
	return string(driver.AppendText(nil, []byte(text), driver.MaxTextBytes))
}

// now returns the time of an outcome.
func now() time.Time { return time.Now().UTC() }
