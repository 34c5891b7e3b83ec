package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/client/worker"
	"fanfare.dev/fanfare/internal/sink"
)

// instance connects an instance of a worker of the service news, until the test or the returned function ends it.
func (s *server) instance(name string, fn func(body []byte) (any, error)) (stop func()) {
	s.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		err := worker.Run(ctx, worker.Options{URL: s.url, Key: s.key, Service: "news", Worker: name, Instance: s.t.Name() + name, Logger: slog.New(slog.DiscardHandler)},
			func(_ context.Context, t *worker.Task) ([]byte, error) {
				answer, err := fn(t.Body)
				if err != nil {
					return nil, err
				}
				return json.Marshal(answer)
			})
		if err != nil {
			s.t.Errorf("instance of %s: %v", name, err)
		}
	}()
	stop = sync.OnceFunc(func() { cancel(); <-ended })
	s.t.Cleanup(stop)
	return stop
}

// recipientsAsked is the part of a request to a formatter that the test reads.
type recipientsAsked struct {
	Template string
	Messages []struct {
		ID, To   string
		Document struct {
			Data struct {
				Event struct{ Data struct{ Title string } }
			}
		}
	}
}

// TestAWorkerFormatsMessages lets a worker write the mails of a broadcast. It fails for one person, and ends in the middle
// of the broadcast: another instance formats the rest.
func TestAWorkerFormatsMessages(t *testing.T) {
	t.Parallel()
	const people = 2000
	r := newRelay(t, sink.Config{KeepFirst: people})
	s := serve(t)
	s.http.must(200, "POST", "/v1/apply", yaml, fmt.Sprintf(`service: news
channels:
  email: {driver: smtp, relay: %q, from: "News <news@example.org>", rate: unlimited, connections: 4}
workers:
  writer: {message_limit: 256KB, concurrency: 2}
templates:
  story: {formatter: writer}
topics:
  story: {template: story}
`, r.addr))
	s.subscribe(crowd(people)...)
	write := func(body []byte) (any, error) {
		var in recipientsAsked
		if err := json.Unmarshal(body, &in); err != nil {
			return nil, err
		}
		if in.Template != "story" {
			return nil, errors.New("unexpected template " + in.Template)
		}
		var messages []map[string]string
		for _, m := range in.Messages {
			if m.To == "person7@example.org" {
				messages = append(messages, map[string]string{"id": m.ID, "error": "this person reads nothing"})
				continue
			}
			title := m.Document.Data.Event.Data.Title
			messages = append(messages, map[string]string{"id": m.ID, "subject": title + " for " + m.To, "text": "Hello " + m.To + ", <b>", "html": "<p>Hello <b>" + m.To + "</b></p>"})
		}
		return map[string]any{"messages": messages}, nil
	}
	half := make(chan struct{})
	var once sync.Once
	calls := 0
	var mu sync.Mutex
	stop := s.instance("writer", func(body []byte) (any, error) {
		mu.Lock()
		calls++
		if calls > 3 {
			once.Do(func() { close(half) })
		}
		mu.Unlock()
		return write(body)
	})
	event := s.http.publish(`{"title":"It works"}`)
	<-half
	stop()
	s.instance("writer", write)
	b := s.http.completed(event)
	if b.Counts[fanfare.Accepted] != people-1 || b.Counts[fanfare.Failed] != 1 {
		t.Errorf("got %v", b.Counts)
	}
	seen := map[string]int{}
	for _, m := range r.sink.Messages() {
		seen[m.To[0]]++
		text := string(m.Body)
		if !strings.Contains(text, "Subject: It works for "+m.To[0]+"\r\n") || !strings.Contains(text, "<p>Hello <b>"+m.To[0]+"</b></p>") {
			t.Fatalf("the mail to %s is not that of the worker:\n%s", m.To[0], text)
		}
	}
	if len(seen) != people-1 || seen["person7@example.org"] != 0 {
		t.Errorf("%d people got mail", len(seen))
	}
	for to, n := range seen {
		if n != 1 {
			t.Errorf("%s got %d mails", to, n)
		}
	}
}

// TestAWorkerDeliversMessages lets a worker deliver the messages of a channel. The worker ends in the middle, and another
// instance continues. A worker that is told to deliver a message again sees the same id.
func TestAWorkerDeliversMessages(t *testing.T) {
	t.Parallel()
	const people = 1000
	s := serve(t)
	s.http.must(200, "POST", "/v1/apply", yaml, `service: news
channels:
  email: {driver: worker, worker: postman, from: "News <news@example.org>", rate: unlimited, connections: 4, batch: 20, retry: [1s]}
workers:
  postman: {message_limit: 256KB, concurrency: 4}
templates:
  story: {subject: "{{ event.title }}", text: "It is {{ event.title }}."}
topics:
  story: {template: story}
`)
	s.subscribe(crowd(people)...)
	var mu sync.Mutex
	delivered := map[string]string{} // recipient by id
	tried := map[string]bool{}
	half := make(chan struct{})
	var once sync.Once
	deliver := func(body []byte) (any, error) {
		var in struct {
			Channel  string
			Messages []struct{ ID, To, From, Mail string }
		}
		if err := json.Unmarshal(body, &in); err != nil {
			return nil, err
		}
		mu.Lock()
		defer mu.Unlock()
		var results []map[string]any
		for _, m := range in.Messages {
			status := "accepted"
			switch {
			case !strings.Contains(m.Mail, "It is news.") || m.From != "news@example.org" || in.Channel != "email":
				return nil, fmt.Errorf("unexpected message %+v", m)
			case m.To == "person3@example.org":
				status = "failed"
			case m.To == "person5@example.org" && !tried[m.To]:
				tried[m.To], status = true, "retry"
			default:
				delivered[m.ID] = m.To
			}
			results = append(results, map[string]any{"id": m.ID, "status": status, "text": "told", "code": 200})
		}
		if len(delivered) > people/3 {
			once.Do(func() { close(half) })
		}
		return map[string]any{"results": results}, nil
	}
	stop := s.instance("postman", deliver)
	event := s.http.publish(`{"title":"news"}`)
	<-half
	stop()
	s.instance("postman", deliver)
	b := s.http.completed(event)
	if b.Counts[fanfare.Accepted] != people-1 || b.Counts[fanfare.Failed] != 1 {
		t.Errorf("got %v", b.Counts)
	}
	mu.Lock()
	defer mu.Unlock()
	to := map[string]int{}
	for _, address := range delivered {
		to[address]++
	}
	if len(delivered) != people-1 || len(to) != people-1 || !tried["person5@example.org"] {
		t.Errorf("%d messages to %d people", len(delivered), len(to))
	}
}

// TestAnUnknownWorkerIsRefused names workers that do not exist, and deletes one that is used.
func TestAnUnknownWorkerIsRefused(t *testing.T) {
	t.Parallel()
	s := serve(t)
	const good = `service: news
channels:
  cards: {driver: worker, worker: printer, from: "News <news@example.org>"}
workers:
  printer: {}
`
	s.http.must(200, "POST", "/v1/apply", yaml, good)
	for document, want := range map[string]string{
		strings.Replace(good, "worker: printer", "worker: printr", 1):       "unknown worker",
		good + "templates:\n  x: {formatter: writer}\n":                     "/templates/x/formatter",
		strings.Replace(good, "printer: {}", "printer: {delete: true}", 1):  "cannot be deleted",
		strings.Replace(good, ", from: \"News <news@example.org>\"", "", 1): "from is missing",
	} {
		status, text, _ := s.http.send("POST", "/v1/apply", yaml, document)
		if status < 400 || !strings.Contains(text, want) {
			t.Errorf("%s\ngot %d %s, want %q", document, status, text, want)
		}
	}
}
