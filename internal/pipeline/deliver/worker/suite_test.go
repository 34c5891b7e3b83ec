package worker

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"fanfare.dev/fanfare/internal/pipeline/deliver/delivertest"
	"fanfare.dev/fanfare/internal/pipeline/deliver/driver"
)

// A program is a worker: it answers requests as its behaviour says.
type program struct {
	mu        sync.Mutex
	behaviour delivertest.Behaviour
	received  map[string][]byte // by id
	order     []string
	requests  int
	largest   int // messages in a request
}

func (p *program) ready() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.behaviour == delivertest.Unreachable {
		return errors.New("no instance is connected")
	}
	return nil
}

func (p *program) call(ctx context.Context, request []byte) ([]byte, error) {
	var in struct {
		Service, Channel string
		Messages         []map[string]any
	}
	if err := json.Unmarshal(request, &in); err != nil {
		return nil, &Fault{err.Error()}
	}
	p.mu.Lock()
	behaviour := p.behaviour
	p.requests++
	p.largest = max(p.largest, len(in.Messages))
	p.mu.Unlock()
	var results []map[string]any
	for _, m := range in.Messages {
		id, body := m["id"].(string), []byte(m["mail"].(string))
		status := "accepted"
		switch behaviour {
		case delivertest.RefusesTemporarily:
			status = "retry"
		case delivertest.RefusesPermanently:
			status = "failed"
		case delivertest.Accepts:
			p.mu.Lock()
			if p.received[id] == nil {
				p.order = append(p.order, id)
			}
			p.received[id] = bytes.Clone(body)
			p.mu.Unlock()
		}
		results = append(results, map[string]any{"id": id, "status": status, "code": 250, "text": "told"})
	}
	switch behaviour {
	case delivertest.DropsAfterBody:
		return nil, errors.New("the session ended")
	case delivertest.NeverReplies:
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return json.Marshal(map[string]any{"results": results})
}

func (p *program) config(batch int) Config {
	return Config{Service: "acme", Channel: "letters", Worker: "printer", Batch: batch, MaxBytes: 1 << 20, Timeout: time.Minute, Ready: p.ready, Call: p.call}
}

func newProgram() *program {
	return &program{received: map[string][]byte{}, behaviour: delivertest.Accepts}
}

func TestTheDriverKeepsTheContract(t *testing.T) {
	delivertest.Run(t, func(_ *testing.T, timeout time.Duration) *delivertest.Fixture {
		p := newProgram()
		config := p.config(8)
		config.Timeout = timeout
		return &delivertest.Fixture{
			Driver: New(config), Relay: "printer", HasAttachments: true, Idempotent: true,
			Message: func(n int, text string) *driver.Message {
				return &driver.Message{From: "s@example.com", To: fmt.Sprintf("r%d@example.com", n), Body: []byte("Subject: x\r\n\r\n" + text)}
			},
			SetBehaviour: func(b delivertest.Behaviour) {
				p.mu.Lock()
				p.behaviour = b
				p.mu.Unlock()
			},
			Behaviours: []delivertest.Behaviour{delivertest.RefusesTemporarily, delivertest.RefusesPermanently, delivertest.DropsAfterBody, delivertest.NeverReplies, delivertest.Unreachable},
			OnBody:     func(func([]byte)) {}, // the worker gets several bodies at once, and knows a message by its id
			Received: func() (all [][]byte) {
				p.mu.Lock()
				defer p.mu.Unlock()
				for _, id := range p.order {
					all = append(all, p.received[id])
				}
				return all
			},
		}
	})
}

// outcomes sends messages with a driver that calls call, and returns the outcomes by recipient.
func outcomes(t *testing.T, c Config, messages ...*driver.Message) map[string]driver.Outcome {
	t.Helper()
	for i, m := range messages {
		m.Delivery.Day, m.Delivery.Manifest, m.Delivery.Position = 20777, 64, uint32(i)
	}
	queue := delivertest.NewQueue(messages...)
	queue.AnyContent = true
	if err := New(c).Serve(t.Context(), queue.Connection()); err != nil {
		t.Fatal(err)
	}
	queue.Check(t)
	all := map[string]driver.Outcome{}
	for ref, outcome := range queue.Outcomes() {
		all[messages[ref.Position].To] = outcome
	}
	return all
}

func TestEachResultOfAWorkerBecomesAnOutcome(t *testing.T) {
	c := newProgram().config(10)
	c.Documents = true
	var asked string
	c.Call = func(_ context.Context, request []byte) ([]byte, error) {
		asked = string(request)
		return []byte(`{"results":[
			{"id":"dlv-20261120-40-3","status":"sent","text":"?"},
			{"id":"dlv-20261120-40-1","status":"retry","text":"busy\nnow","code":7,"retry_after":1.5},
			{"id":"dlv-1-1-1","status":"failed"},
			{"id":"dlv-20261120-40-0","status":"accepted","text":"queued as 17","code":200}]}`), nil
	}
	var all []*driver.Message
	for _, to := range []string{"https://a", "https://b", "https://c", "https://d"} {
		all = append(all, &driver.Message{To: to, Body: []byte(`{"n": 1}`)})
	}
	got := outcomes(t, c, all...)
	for to, want := range map[string]driver.Outcome{
		"https://a": {Verdict: driver.Accepted, Code: 200, Text: "queued as 17"},
		"https://b": {Verdict: driver.Temporary, Code: 7, Text: "busy now", RetryAfter: 1500 * time.Millisecond},
		"https://c": {Verdict: driver.Temporary, Text: "the response of the worker has no result for the message"},
		"https://d": {Verdict: driver.Temporary, Text: `the worker returned the status "sent": use accepted, retry or failed`},
	} {
		o := got[to]
		if o.Relay != "printer" || o.At.IsZero() {
			t.Errorf("%s: relay %q, at %s", to, o.Relay, o.At)
		}
		if o.Relay, o.At = "", (time.Time{}); o != want {
			t.Errorf("%s: got %+v, want %+v", to, o, want)
		}
	}
	const want = `{"service":"acme","channel":"letters","messages":[{"id":"dlv-20261120-40-0","to":"https://a","document":{"n":1}},`
	if !strings.HasPrefix(asked, want) {
		t.Errorf("the request was %s, want %s...", asked, want)
	}
}

func TestAFaultOfAWorkerIsATemporaryFailureOfAllMessages(t *testing.T) {
	for name, c := range map[string]struct {
		response string
		err      error
		text     string
	}{
		"fault":      {"", &Fault{"no paper"}, "no paper"},
		"not JSON":   {"<html>", nil, "the response of the worker is not valid: invalid character '<' looking for beginning of value"},
		"no results": {"{}", nil, "the response of the worker has no result for the message"},
	} {
		t.Run(name, func(t *testing.T) {
			config := newProgram().config(10)
			config.Call = func(context.Context, []byte) ([]byte, error) { return []byte(c.response), c.err }
			for to, o := range outcomes(t, config, &driver.Message{To: "a@x", Body: []byte("1")}, &driver.Message{To: "b@x", Body: []byte("2")}) {
				if o.Verdict != driver.Temporary || o.Text != c.text {
					t.Errorf("%s: %+v", to, o)
				}
			}
		})
	}
}

func TestRequestsKeepTheLimitsOfTheWorker(t *testing.T) {
	p := newProgram()
	c := p.config(3)
	c.MaxBytes = 4 << 10
	var all []*driver.Message
	for i := range 10 {
		all = append(all, &driver.Message{To: fmt.Sprintf("%d@x", i), Body: bytes.Repeat([]byte("x"), 200)})
	}
	all[4].Body = bytes.Repeat([]byte("x"), 3000) // fits only without others of this size
	all[5].Body = bytes.Repeat([]byte("x"), 3000)
	all[6].Body = bytes.Repeat([]byte("x"), 5000)
	for to, o := range outcomes(t, c, all...) {
		want := driver.Accepted
		if to == "6@x" {
			want = driver.Permanent
		}
		if o.Verdict != want {
			t.Errorf("%s: %+v", to, o)
		}
	}
	if p.largest != 3 || p.requests < 4 {
		t.Errorf("%d requests, the largest has %d messages", p.requests, p.largest)
	}
	if o := outcomes(t, c, all[6])["6@x"]; !strings.Contains(o.Text, "raise its message_limit") {
		t.Errorf("the outcome does not say what to do: %+v", o)
	}
}
