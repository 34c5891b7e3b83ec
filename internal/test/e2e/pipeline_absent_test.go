package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/client/worker"
	"fanfare.dev/fanfare/internal/sink"
)

// absentDocument is filteredNews with a topic that needs no worker, and one with a formatter.
func absentDocument(relay string) string {
	document := fmt.Sprintf(filteredNews, relay) + "  plain: {template: story}\n  written: {template: written}\n"
	return strings.Replace(document, "templates:\n", "templates:\n  written: {formatter: chooser}\n", 1)
}

// subscribeTo lets people have the events of a topic.
func (s *server) subscribeTo(topic string, people ...string) {
	s.t.Helper()
	var b strings.Builder
	for _, p := range people {
		fmt.Fprintf(&b, `{"topic":%q,"channel":"email","to":%q}`+"\n", topic, p)
	}
	if sum := into[summary](s.t, s.http.must(200, "POST", "/v1/subscriptions?quiet=true", lines, b.String())); sum.Created != len(people) {
		s.t.Fatalf("of %d subscriptions: %+v", len(people), sum)
	}
}

// publishTo publishes an event of a topic and returns its id.
func (s *server) publishTo(topic string) string {
	s.t.Helper()
	return into[accepted](s.t, s.http.must(202, "POST", "/v1/topics/"+topic+"/events", plain, `{"title":"news"}`)).Events[0].ID
}

// TestMessagesPassThoseThatWaitForAWorker publishes events that wait for a filter and a formatter without an instance. A
// message of another topic of the channel is sent at once. One of the events is cancelled; the others continue when an
// instance connects.
func TestMessagesPassThoseThatWaitForAWorker(t *testing.T) {
	t.Parallel()
	const people = 2000
	r := newRelay(t, sink.Config{KeepFirst: 3 * people})
	s := serve(t)
	s.http.must(200, "POST", "/v1/apply", yaml, absentDocument(r.addr))
	s.subscribe(crowd(people)...)
	s.subscribeTo("written", "reader@example.org")
	s.subscribeTo("plain", "other@example.org")
	event, cancelled, written := s.publishTo("story"), s.publishTo("story"), s.publishTo("written")
	for _, waits := range []string{event, cancelled, written} {
		s.frozen(waits)
	}
	waiting := func() string { return s.http.must(200, "GET", "/v1/status", "", "") }
	eventually(t, "an instance is wanted", func() bool { return strings.Contains(waiting(), `"wanted":1`) })
	if b := s.http.completed(s.publishTo("plain")); b.Counts[fanfare.Accepted] != 1 {
		t.Errorf("the other topic: %v", b.Counts)
	}
	s.mustRun("", "cancel", "--broadcast", cancelled)
	if b := s.http.completed(cancelled); b.Counts[fanfare.Cancelled] != people {
		t.Errorf("the cancelled event: %v", b.Counts)
	}
	if n := r.total(); n != 1 {
		t.Errorf("%d mails were sent without an instance", n)
	}
	log := newFilterLog()
	s.instance("chooser", func(body []byte) (any, error) {
		if !strings.Contains(string(body[:200]), `"template":"written"`) {
			return log.answer(body)
		}
		return map[string]any{"messages": []map[string]string{{"id": s.http.deliveries(written, "")[0].ID, "subject": "Written", "text": "Written"}}}, nil
	})
	b := s.http.completed(event)
	if b.Counts[fanfare.Accepted] != people/2 || b.Counts[fanfare.Suppressed] != people/2-1 || b.Counts[fanfare.Failed] != 1 {
		t.Errorf("the filtered event: %v", b.Counts)
	}
	if b := s.http.completed(written); b.Counts[fanfare.Accepted] != 1 {
		t.Errorf("the formatted event: %v", b.Counts)
	}
	if n := log.repeated(); n > 0 || len(log.asked) != people {
		t.Errorf("the filter was asked about %d people, about %d of them twice", len(log.asked), n)
	}
	if n := r.total(); n != 2+people/2 || r.sink.Stats().Duplicates != 0 {
		t.Errorf("%d mails, %d of them twice", n, r.sink.Stats().Duplicates)
	}
	if parked := into[fanfareStatus](t, s.mustRun("", "status", "--json")).Parked; parked != 0 {
		t.Errorf("%d batches are parked", parked)
	}
}

// TestMessagesPassThoseWhoseFilterDied kills the only instance of a filter while it has requests. Another topic continues, and
// the next instance is asked about each person once: the requests of the one that was killed do not wait for it.
func TestMessagesPassThoseWhoseFilterDied(t *testing.T) {
	t.Parallel()
	const people = 2000
	r := newRelay(t, sink.Config{KeepFirst: people})
	s := serve(t)
	s.http.must(200, "POST", "/v1/apply", yaml, absentDocument(r.addr))
	s.subscribe(crowd(people)...)
	s.subscribeTo("plain", "other@example.org")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	first := exec.Command(self, "worker", "filter", "0") // it answers no request
	first.Env = append(os.Environ(), "FANFARE_URL="+s.url, "FANFARE_KEY="+s.key, "FANFARE_SERVICE=news", "FANFARE_WORKER=chooser")
	if err := first.Start(); err != nil {
		t.Fatal(err)
	}
	kill := sync.OnceFunc(func() { _ = first.Process.Kill(); _ = first.Wait() }) // the process has been killed
	t.Cleanup(kill)
	running := func() int {
		page := into[struct{ Instances []struct{ Running int } }](t, s.http.must(200, "GET", "/v1/workers/chooser", "", ""))
		if len(page.Instances) == 0 {
			return -1
		}
		return page.Instances[0].Running
	}
	eventually(t, "the instance is connected", func() bool { return running() == 0 })
	event := s.publishTo("story")
	eventually(t, "the instance has requests", func() bool { return running() > 0 })
	kill()
	if b := s.http.completed(s.publishTo("plain")); b.Counts[fanfare.Accepted] != 1 {
		t.Errorf("the other topic: %v", b.Counts)
	}
	log := newFilterLog()
	s.instance("chooser", log.answer)
	b := s.http.completed(event)
	if b.Counts[fanfare.Accepted] != people/2 || b.Counts[fanfare.Suppressed] != people/2-1 || b.Counts[fanfare.Failed] != 1 {
		t.Errorf("the filtered event: %v", b.Counts)
	}
	if n := log.repeated(); n > 0 || len(log.asked) != people {
		t.Errorf("the filter was asked about %d people, about %d of them twice", len(log.asked), n)
	}
}

// TestADeletedFilterParksWhatWaitsForIt deletes a filter while an event waits for it. The event keeps its filter, so its
// batch is parked with the reason; other messages are sent. The operator registers the worker again and retries the batch.
func TestADeletedFilterParksWhatWaitsForIt(t *testing.T) {
	t.Parallel()
	const people = 20
	r := newRelay(t, sink.Config{KeepFirst: people})
	s := serve(t)
	document := fmt.Sprintf(filteredNews+"  plain: {template: story}\n", r.addr)
	s.http.must(200, "POST", "/v1/apply", yaml, document)
	s.subscribe(crowd(people)...)
	s.subscribeTo("plain", "other@example.org")
	// The instance takes a request and does not answer it before the worker is deleted.
	took, hold := make(chan struct{}, 10), make(chan struct{})
	stop := s.instance("chooser", func([]byte) (any, error) {
		took <- struct{}{}
		<-hold
		return nil, errors.New("too late")
	})
	release := sync.OnceFunc(func() { close(hold) })
	t.Cleanup(release)
	event := s.publishTo("story")
	<-took
	without := strings.NewReplacer(", filter: chooser", "", "chooser: {message_limit: 256KB, concurrency: 2}", "chooser: {delete: true}").Replace(document)
	s.http.must(200, "POST", "/v1/apply", yaml, without)
	release()
	stop()
	if b := s.http.completed(s.publishTo("plain")); b.Counts[fanfare.Accepted] != 1 {
		t.Errorf("the other topic: %v", b.Counts)
	}
	var parked []fanfare.Parked
	eventually(t, "the batch is parked", func() bool {
		parked = into[[]fanfare.Parked](t, s.mustRun("", "parked", "list", "--json"))
		return len(parked) > 0
	})
	want := "filter chooser: the service has no worker \"chooser\" (register the worker in the section `workers` of the configuration document, then apply the document)"
	if p := parked[0]; p.Event != event || p.Reason != want || p.Members != people {
		t.Errorf("parked as %+v", p)
	}
	if state := into[struct{ State string }](t, s.http.must(200, "GET", "/v1/events/"+event, "", "")).State; state == "completed" {
		t.Errorf("the event is %s", state)
	}
	s.http.must(200, "POST", "/v1/apply", yaml, document)
	log := newFilterLog()
	s.instance("chooser", log.answer)
	for _, p := range parked {
		s.mustRun("", "parked", "retry", p.ID)
	}
	b := s.http.completed(event)
	if b.Counts[fanfare.Accepted] != people/2 || b.Counts[fanfare.Suppressed] != people/2-1 || b.Counts[fanfare.Failed] != 1 {
		t.Errorf("got %v", b.Counts)
	}
	if n := r.total(); n != 1+people/2 || r.sink.Stats().Duplicates != 0 {
		t.Errorf("%d mails, %d of them twice", n, r.sink.Stats().Duplicates)
	}
}

// TestAnAgentStartsTheWorkersOfThePipeline has an agent, and no instance. An event makes the agent start one, which filters and
// delivers.
func TestAnAgentStartsTheWorkersOfThePipeline(t *testing.T) {
	t.Parallel()
	const people = 20
	s := serve(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, filter := range []string{"", ", filter: double"} {
		s.http.must(200, "POST", "/v1/apply", yaml, fmt.Sprintf(`service: news
channels:
  email: {driver: worker, worker: double, from: "News <news@example.org>", rate: unlimited, retry: [1s]}
workers:
  double: {command: [%s, worker, pipeline]}
templates:
  story: {subject: "{{ event.title }}", text: "It is {{ event.title }}."}
topics:
  story: {template: story%s}
`, self, filter))
		if filter == "" {
			newHost(t, s, "agent", 2)
			s.subscribe(crowd(people)...)
		}
		if b := s.http.completed(s.publishTo("story")); b.Counts[fanfare.Accepted] != people {
			t.Errorf("got %v", b.Counts)
		}
	}
}

// runPipeline is a process that keeps all recipients and accepts all messages.
func runPipeline() int {
	err := worker.Run(context.Background(), worker.Options{}, func(_ context.Context, task *worker.Task) ([]byte, error) {
		var in struct{ Messages []struct{ ID string } }
		if err := json.Unmarshal(task.Body, &in); err != nil {
			return nil, err
		}
		var answers, results []map[string]any
		for _, m := range in.Messages {
			answers = append(answers, map[string]any{"id": m.ID, "keep": true})
			results = append(results, map[string]any{"id": m.ID, "status": "accepted", "text": "told"})
		}
		if task.Action == "filter" {
			return json.Marshal(map[string]any{"messages": answers})
		}
		return json.Marshal(map[string]any{"results": results})
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}
