package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/client/worker"
	"fanfare.dev/fanfare/internal/sink"
)

// filterLog is what the instances of a filter were asked.
type filterLog struct {
	mu    sync.Mutex
	asked map[string]int // by delivery
}

// answer keeps people with an even number, removes the others, and has an error for person7.
func (l *filterLog) answer(body []byte) (any, error) {
	var in struct {
		Service, Channel, Topic, Template string
		Messages                          []struct {
			ID, To   string
			Document struct {
				Data struct {
					Event struct{ Data struct{ Title string } }
				}
			}
		}
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, err
	}
	if in.Service != "news" || in.Channel != "email" || in.Topic != "story" || in.Template != "story" {
		return nil, fmt.Errorf("unexpected request %.200s", body)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	var messages []map[string]any
	for _, m := range in.Messages {
		l.asked[m.ID]++
		one := map[string]any{"id": m.ID}
		if person := m.To; person == "person7@example.org" {
			one["error"] = "no account for this person"
		} else {
			one["keep"] = kept(person)
		}
		if m.Document.Data.Event.Data.Title == "" {
			return nil, fmt.Errorf("%s has no document", m.ID)
		}
		messages = append(messages, one)
	}
	return map[string]any{"messages": messages}, nil
}

// runFilter is a process that answers as filterLog.answer does. It stops answering after a number of requests.
func runFilter(args []string) int {
	requests, err := strconv.Atoi(args[0])
	if err != nil {
		return 2
	}
	log := newFilterLog()
	var mu sync.Mutex
	err = worker.Run(context.Background(), worker.Options{}, func(ctx context.Context, task *worker.Task) ([]byte, error) {
		mu.Lock()
		if requests--; requests < 0 {
			mu.Unlock()
			<-ctx.Done()
			return nil, ctx.Err()
		}
		mu.Unlock()
		answer, err := log.answer(task.Body)
		if err != nil {
			return nil, err
		}
		return json.Marshal(answer)
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func newFilterLog() *filterLog {
	return &filterLog{asked: map[string]int{}}
}

// kept reports whether the number of a person is even.
func kept(person string) bool {
	name, _, _ := strings.Cut(person, "@")
	return strings.Contains("02468", name[len(name)-1:])
}

// repeated returns how many deliveries the log has more than once.
func (l *filterLog) repeated() (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, times := range l.asked {
		if times > 1 {
			n++
		}
	}
	return n
}

const filteredNews = `service: news
channels:
  email: {driver: smtp, relay: %q, from: "News <news@example.org>", rate: unlimited, connections: 4, retry: [1s, 1s, 1s]}
workers:
  chooser: {message_limit: 256KB, concurrency: 2}
templates:
  story: {subject: "{{ event.title }}", text: "It is {{ event.title }}."}
topics:
  story: {template: story, filter: chooser}
`

// checkFiltered checks that those whom the filter keeps got one mail each, and what is recorded of the others.
func (s *server) checkFiltered(r *relay, event string, people int) {
	s.t.Helper()
	b := s.http.completed(event)
	if b.Messages != int64(people) || b.Counts[fanfare.Accepted] != int64(people/2) || b.Counts[fanfare.Suppressed] != int64(people/2-1) || b.Counts[fanfare.Failed] != 1 {
		s.t.Errorf("%d messages, %v", b.Messages, b.Counts)
	}
	mails := map[string]int{}
	for _, m := range r.sink.Messages() {
		mails[m.To[0]]++
	}
	for to, n := range mails {
		if n != 1 || !kept(to) {
			s.t.Errorf("%s got %d mails", to, n)
		}
	}
	if len(mails) != people/2 {
		s.t.Errorf("%d people got mail, want %d", len(mails), people/2)
	}
	for state, want := range map[string]string{"suppressed": "removed by filter chooser", "failed": "filter chooser: no account for this person"} {
		all := s.http.deliveries(event, "&state="+state)
		if len(all) == 0 {
			s.t.Errorf("no delivery is %s", state)
		}
		for _, d := range all {
			if text := d.Attempts[len(d.Attempts)-1].Text; text != want {
				s.t.Errorf("%s is %s because of %q, want %q", d.ID, state, text, want)
				break
			}
		}
	}
}

// TestAWorkerFiltersRecipients removes half of the recipients. The process of the worker stops answering in the middle, and is
// killed: another instance continues, and is not asked about members whose answers were stored. The relay refuses some mails
// at first: the filter is not asked again before the next attempt.
func TestAWorkerFiltersRecipients(t *testing.T) {
	t.Parallel()
	const people = 2000
	r := newRelay(t, sink.Config{KeepFirst: people, Inject: sink.Inject{TempFail: 0.2}})
	s := serve(t)
	s.http.must(200, "POST", "/v1/apply", yaml, fmt.Sprintf(filteredNews, r.addr))
	s.subscribe(crowd(people)...)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	first := exec.Command(self, "worker", "filter", "7")
	first.Env = append(os.Environ(), "FANFARE_URL="+s.url, "FANFARE_KEY="+s.key, "FANFARE_SERVICE=news", "FANFARE_WORKER=chooser")
	first.Stderr = os.Stderr
	if err := first.Start(); err != nil {
		t.Fatal(err)
	}
	kill := sync.OnceFunc(func() { _ = first.Process.Kill(); _ = first.Wait() }) // the process has been killed
	t.Cleanup(kill)
	event := s.http.publish(`{"title":"news"}`)
	var stored []fanfare.Delivery
	eventually(t, "some of the removed recipients are settled", func() bool {
		status, _, _ := s.http.send("GET", "/v1/events/"+event, "", "")
		if status == 200 {
			stored = s.http.deliveries(event, "&state=suppressed")
		}
		return len(stored) > 0
	})
	kill()
	stored = s.http.allDeliveries(event)
	log := newFilterLog()
	s.instance("chooser", log.answer)
	s.checkFiltered(r, event, people)
	if n := log.repeated(); n > 0 {
		t.Errorf("the filter was asked twice about %d recipients", n)
	}
	log.mu.Lock()
	defer log.mu.Unlock()
	known := 0
	for _, d := range stored {
		if d.State == "pending" {
			continue
		}
		if known++; log.asked[d.ID] > 0 {
			t.Errorf("%s was %s, and the filter was asked again", d.ID, d.State)
		}
	}
	if known == 0 || len(log.asked) == 0 || known+len(log.asked) > people {
		t.Errorf("%d answers were stored before the kill, and %d people were asked about after it", known, len(log.asked))
	}
}

// TestAFilterIsAskedOnce kills the server when all answers are stored and nothing is sent. The next start sends to those whom
// the filter has kept, without asking it: no instance is connected.
func TestAFilterIsAskedOnce(t *testing.T) {
	t.Parallel()
	const people = 600
	r := newRelay(t, sink.Config{KeepFirst: people})
	s := serve(t, "--durability", "fsync")
	s.http.must(200, "POST", "/v1/apply", yaml, fmt.Sprintf(filteredNews, "127.0.0.1:1")) // nothing listens there
	s.subscribe(crowd(people)...)
	log := newFilterLog()
	stop := s.instance("chooser", log.answer)
	event := s.http.publish(`{"title":"news"}`)
	eventually(t, "the removed recipients are settled", func() bool {
		status, text, _ := s.http.send("GET", "/v1/events/"+event, "", "")
		return status == 200 && into[fanfare.Broadcast](t, text).Counts[fanfare.Suppressed] == people/2-1
	})
	s.kill()
	stop()
	if len(r.sink.Messages()) > 0 || len(log.asked) != people || log.repeated() > 0 {
		t.Errorf("before the kill, %d mails were sent and %d people were asked about, %d of them again", len(r.sink.Messages()), len(log.asked), log.repeated())
	}
	s.start()
	s.http.must(200, "POST", "/v1/apply", yaml, fmt.Sprintf(filteredNews, r.addr))
	s.checkFiltered(r, event, people)
}

// TestAFilterWithoutAnAnswerParksTheBatch answers about only one of the recipients of each request. When the worker is
// repaired, the parked batch can be retried.
func TestAFilterWithoutAnAnswerParksTheBatch(t *testing.T) {
	t.Parallel()
	const people = 20
	r := newRelay(t, sink.Config{KeepFirst: people})
	s := serve(t)
	s.http.must(200, "POST", "/v1/apply", yaml, fmt.Sprintf(filteredNews, r.addr))
	s.subscribe(crowd(people)...)
	log := newFilterLog()
	stop := s.instance("chooser", func(body []byte) (any, error) {
		answer, err := log.answer(body)
		if err != nil {
			return nil, err
		}
		all := answer.(map[string]any)["messages"].([]map[string]any)
		return map[string]any{"messages": all[:1]}, nil
	})
	event := s.http.publish(`{"title":"news"}`)
	var parked struct {
		Parked []struct {
			ID, Reason string
			Failures   int
		}
	}
	eventually(t, "the batch is parked", func() bool {
		parked = into[struct {
			Parked []struct {
				ID, Reason string
				Failures   int
			}
		}](t, s.http.must(200, "GET", "/v1/parked", "", ""))
		return len(parked.Parked) > 0
	})
	if p := parked.Parked[0]; !strings.Contains(p.Reason, "filter chooser: the response has no answer for dlv-") {
		t.Errorf("parked is %+v", p)
	}
	if n := len(r.sink.Messages()); n > 0 {
		t.Errorf("%d mails were sent", n)
	}
	stop()
	s.instance("chooser", log.answer)
	for _, p := range parked.Parked {
		s.http.must(204, "POST", "/v1/parked/"+p.ID+"/retry", "", "")
	}
	s.checkFiltered(r, event, people)
}

// TestAWrongFilterIsRefused names workers that do not exist, a topic with a digest, and deletes a worker that is used.
func TestAWrongFilterIsRefused(t *testing.T) {
	t.Parallel()
	s := serve(t)
	good := fmt.Sprintf(filteredNews, "127.0.0.1:25")
	s.http.must(200, "POST", "/v1/apply", yaml, good)
	for document, want := range map[string]string{
		strings.Replace(good, "filter: chooser", "filter: choser", 1):                                          "/topics/story/filter",
		strings.Replace(good, "filter: chooser", "filter: chooser, digest: {template: story}", 1):              "it cannot have a filter",
		strings.Replace(good, "chooser: {message_limit: 256KB, concurrency: 2}", "chooser: {delete: true}", 1): "cannot be deleted",
	} {
		status, text, _ := s.http.send("POST", "/v1/apply", yaml, document)
		if status < 400 || !strings.Contains(text, want) {
			t.Errorf("%s\ngot %d %s, want %q", document, status, text, want)
		}
	}
	if text := s.http.must(200, "GET", "/v1/topics/story", "", ""); !strings.Contains(text, `"filter":"chooser"`) {
		t.Errorf("the topic is shown as %s", text)
	}
}
