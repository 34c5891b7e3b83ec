package rendering

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"mime/quotedprintable"
	"net/mail"
	"runtime"
	"strings"
	"time"

	"github.com/osteele/liquid"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/bench/harness"
	"fanfare.dev/fanfare/internal/bench/loadgen"
	"fanfare.dev/fanfare/internal/bench/report"
	"fanfare.dev/fanfare/internal/mail/signedlink"
	"fanfare.dev/fanfare/internal/render"
)

// A renderSpec describes messages that a process of its own formats with one thread.
type renderSpec struct {
	Bytes   int  // of the body
	Each    bool // every message has another event, as alerts do; otherwise all have the same
	Items   int  // of a digest, with that number of bytes each; 0: no digest
	Millis  int  // duration of the measurement
	Profile string
}

// A renderResult is the speed of formatting. Rates are messages, and bytes, per second.
type renderResult struct {
	Ours   harness.Rate
	Engine harness.Rate // the template engine alone, with all values at hand
	Size   int          // bytes of a whole message
	Wrong  []string
}

// messageSubject and messageGreeting have values of the event and the person. With words
// of eight characters and numbers of five digits the greeting has leastMessage bytes.
const (
	messageSubject  = "{{ event.title }}"
	messageGreeting = "For: {{ subscriber.attributes.name }}, {{ event.title }}\n"
	leastMessage    = 25
)

// messageText returns the text of a template whose message has a body of n bytes.
func messageText(n int) string {
	return messageGreeting + loadgen.PlainLines(n-leastMessage)
}

// A messageSet has a template and the values for all messages.
type messageSet struct {
	spec    renderSpec
	subject string
	text    string
	size    int // of the body
	mailing render.MailBatch
	events  []fanfare.Event
	people  []render.Recipient
	values  []map[string]any // the same for the engine alone
}

func newMessageSet(spec renderSpec) (*messageSet, error) {
	f := &messageSet{spec: spec, subject: messageSubject, text: messageText(spec.Bytes), size: max(leastMessage, spec.Bytes)}
	if spec.Items > 0 {
		f.subject, f.text, f.size = digestSubject, digestText, digestGreeting+spec.Items*spec.Bytes
	}
	template, err := render.Compile(render.Source{Name: "form", Subject: f.subject, Text: f.text})
	if err != nil {
		return nil, err
	}
	signer, err := signedlink.NewSigner("https://news.example.org", bytes.Repeat([]byte{7}, signedlink.MinKeyBytes))
	if err != nil {
		return nil, err
	}
	f.mailing = render.MailBatch{
		Template: template, From: mail.Address{Name: "Alerts", Address: "alerts@example.org"}, Sender: "alerts@example.org", Domain: "example.org",
		Topic: "news", Service: loadgen.Service, ListID: "news.example.org",
		UnsubscribeURL: func(dst []byte, r *render.Recipient) []byte {
			return signer.AppendURL(dst, signedlink.Link{Service: loadgen.Service, Delivery: r.Delivery})
		},
	}
	now := time.Unix(1_790_000_000, 0)
	for i := range harness.DistinctEvents {
		title, name := fmt.Sprintf("No. %05d", i), string(loadgen.AppendWord(nil, i))
		f.events = append(f.events, fanfare.Event{ID: fmt.Sprint(i), Time: now, Data: fmt.Appendf(nil, `{"title":%q}`, title)})
		r := render.Recipient{Address: loadgen.Person(i).Address(), ID: fmt.Sprintf("p%d", i), Attributes: fmt.Appendf(nil, `{"name":%q}`, name), Date: now}
		r.Delivery.Position = uint32(i)
		f.people = append(f.people, r)
		if !spec.Each {
			title = fmt.Sprintf("No. %05d", 0)
		}
		f.values = append(f.values, map[string]any{
			"event":      map[string]any{"title": title},
			"subscriber": map[string]any{"attributes": map[string]any{"name": name}},
		})
	}
	if spec.Items > 0 {
		f.makeDigests(spec.Items)
	}
	return f, nil
}

// writer returns the function that formats message i.
func (f *messageSet) writer() (func(i int) ([]byte, error), error) {
	m := f.mailing
	if m.Digest == nil {
		m.Event = &f.events[0]
	}
	w, err := m.Writer()
	if err != nil {
		return nil, err
	}
	var out []byte
	return func(i int) ([]byte, error) {
		if f.spec.Each {
			m.Event = &f.events[i]
			if w, err = m.Writer(); err != nil {
				return nil, err
			}
		}
		_, out, err = w.Write(out[:0], &f.people[i])
		return out, err
	}, nil
}

// engine returns the function that renders message i with the template engine alone.
func (f *messageSet) engine() (func(i int) ([]byte, error), error) {
	engine := liquid.NewEngine()
	var parts []*liquid.Template
	for _, source := range []string{f.subject, f.text} {
		t, err := engine.ParseString(source)
		if err != nil {
			return nil, err
		}
		parts = append(parts, t)
	}
	var out bytes.Buffer
	return func(i int) ([]byte, error) {
		out.Reset()
		for _, t := range parts {
			if err := t.FRender(&out, f.values[i]); err != nil {
				return nil, err
			}
		}
		return out.Bytes(), nil
	}, nil
}

// check compares some of the messages with those of the engine.
func (f *messageSet) check(write, render func(i int) ([]byte, error), result *renderResult) error {
	var w report.Checks
	for i := 0; i < harness.DistinctEvents; i += harness.DistinctEvents / 16 {
		got, err := write(i)
		if err != nil {
			return err
		}
		result.Size = len(got)
		subject, text, err := readMessage(got)
		if err != nil {
			return err
		}
		want, err := render(i)
		if err != nil {
			return err
		}
		w.Require(subject+text == string(want), "message %d is %q, expected %q", i, subject+text, want)
		w.Require(len(text) == f.size, "the body of message %d has %d bytes, expected %d", i, len(text), f.size)
	}
	result.Wrong = w
	return nil
}

// readMessage reads a mail as a mail program does.
func readMessage(message []byte) (subject, text string, err error) {
	m, err := mail.ReadMessage(bytes.NewReader(message))
	if err != nil {
		return "", "", err
	}
	body := m.Body
	if m.Header.Get("Content-Transfer-Encoding") == "quoted-printable" {
		body = quotedprintable.NewReader(body)
	}
	b, err := io.ReadAll(body)
	return m.Header.Get("Subject"), strings.ReplaceAll(string(b), "\r\n", "\n"), err
}

func RenderPart(_ context.Context, spec renderSpec, _ io.Reader, out *json.Encoder) error {
	runtime.GOMAXPROCS(1) // the rate is that of one core, including garbage collection
	f, err := newMessageSet(spec)
	if err != nil {
		return err
	}
	write, err := f.writer()
	if err != nil {
		return err
	}
	render, err := f.engine()
	if err != nil {
		return err
	}
	var result renderResult
	if err := f.check(write, render, &result); err != nil {
		return err
	}
	for _, x := range []struct {
		make    func(i int) ([]byte, error)
		into    *harness.Rate
		profile string
	}{{write, &result.Ours, spec.Profile}, {render, &result.Engine, ""}} {
		runtime.GC()
		err := harness.Profiled(x.profile, func() (err error) {
			*x.into, err = harness.RunThreads(1, time.Duration(spec.Millis)*time.Millisecond, func() func(i int) (int, error) {
				return func(i int) (int, error) {
					message, err := x.make(i)
					return len(message), err
				}
			})
			return err
		})
		if err != nil {
			return err
		}
	}
	return out.Encode(result)
}
