package e2e

import (
	"strings"
	"testing"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/sink"
)

// single lets mails leave one after the other, so that a broadcast that is held up
// has one of them on the wire.
const single = "rate: unlimited, connections: 1, retry: [1s, 1s]"

// switches pause, resume and cancel by each way of naming what they reach.
var switches = []struct {
	name string
	args func(event string) []string
}{
	{"everything", func(string) []string { return []string{"--all"} }},
	{"service", func(string) []string { return []string{"--service", "news"} }},
	{"channel", func(string) []string { return []string{"--channel", "news/email"} }},
	{"broadcast", func(event string) []string { return []string{"--broadcast", event} }},
}

// halfway publishes an event to people and waits until some of them have it. The
// others get it when they are let go: the first of them is on the wire.
func halfway(s *server, r *relay, people []string) (event string, letGo func()) {
	s.t.Helper()
	const some = 30
	letGo = r.hold(some)
	s.subscribe(people...)
	event = s.http.publish(`{"title":"to all"}`)
	eventually(s.t, "some mails", func() bool { return r.total() == some+1 })
	return event, letGo
}

// awaitIdle waits until nothing is on the wire of what was stopped halfway, and
// returns how many mails have left.
func (s *server) awaitIdle(r *relay, event string) int {
	s.t.Helper()
	var settled int64
	eventually(s.t, "all that left is counted", func() bool {
		settled = s.http.broadcast(event).Counts.Settled()
		return settled == int64(r.total())
	})
	return int(settled)
}

func TestNothingLeavesWhatIsPaused(t *testing.T) {
	t.Parallel()
	for _, scope := range switches {
		t.Run(scope.name, func(t *testing.T) {
			t.Parallel()
			s, r := newsroom(t, sink.Config{}, single)
			people := crowd(300)
			event, letGo := halfway(s, r, people)
			s.mustRun("", append([]string{"pause", "--reason", "wrong text"}, scope.args(event)...)...)
			letGo()
			left := s.awaitIdle(r, event)
			if left == len(people) {
				t.Fatal("the broadcast was over before it was paused")
			}
			status := into[fanfareStatus](t, s.mustRun("", "status", "--json"))
			if len(status.Paused) != 1 || status.Paused[0].Reason != "wrong text" {
				t.Errorf("the status shows as paused %+v", status.Paused)
			}
			if scope.name != "broadcast" { // what comes later waits too
				later := s.http.publish(`{"title":"later"}`)
				eventually(t, "the later event is frozen", func() bool {
					status, _, _ := s.http.send("GET", "/v1/events/"+later, "", "")
					return status == 200 && s.http.broadcast(later).Messages > 0
				})
				s.mustRun("", "cancel", "--broadcast", later)
				if got := s.http.completed(later).Counts[fanfare.Cancelled]; got != int64(len(people)) {
					t.Errorf("%d of the later event were cancelled", got)
				}
			}
			s.mustStop()
			s.start() // it stays paused
			if got := s.http.broadcast(event); got.Counts.Settled() != int64(left) || r.total() != left {
				t.Errorf("after a restart %d are settled and %d left, want %d", got.Counts.Settled(), r.total(), left)
			}
			s.mustRun("", append([]string{"resume"}, scope.args(event)...)...)
			b := s.http.completed(event)
			if b.Counts[fanfare.Accepted] != int64(len(people)) {
				t.Errorf("got %v", b.Counts)
			}
			r.only(people...)
			if status := into[fanfareStatus](t, s.mustRun("", "status", "--json")); len(status.Paused) != 0 {
				t.Errorf("the status still shows as paused %+v", status.Paused)
			}
		})
	}
}

func TestCancelledMessagesAreSettledAndNotSent(t *testing.T) {
	t.Parallel()
	for _, scope := range switches {
		t.Run(scope.name, func(t *testing.T) {
			t.Parallel()
			s, r := newsroom(t, sink.Config{}, single)
			people := crowd(300)
			event, letGo := halfway(s, r, people)
			s.mustRun("", append([]string{"cancel", "--reason", "not true"}, scope.args(event)...)...)
			letGo()
			b := s.http.completed(event)
			if b.Counts.Total() != int64(len(people)) || b.Counts.Settled() != b.Counts.Total() {
				t.Errorf("the counts do not add up: %v", b.Counts)
			}
			if b.Counts[fanfare.Cancelled] == 0 || b.Counts[fanfare.Accepted] != int64(r.total()) {
				t.Errorf("%d mails left; counted are %v", r.total(), b.Counts)
			}
			got := s.http.deliveries(event, "&state=cancelled")
			if len(got) != int(b.Counts[fanfare.Cancelled]) {
				t.Fatalf("%d cancelled deliveries are listed, want %d", len(got), b.Counts[fanfare.Cancelled])
			}
			if attempts := got[0].Attempts; len(attempts) != 1 || attempts[0].Text != "not true" {
				t.Errorf("recorded as %+v", attempts)
			}
			// Later events are not cancelled.
			s.http.completed(s.http.publish(`{"title":"later"}`))
			if want := int(b.Counts[fanfare.Accepted]) + len(people); r.total() != want {
				t.Errorf("%d mails with those of the later event, want %d", r.total(), want)
			}
			if got := s.http.broadcast(event).State; got != "cancelled" && scope.name == "broadcast" {
				t.Errorf("its state is %q", got)
			}
		})
	}
}

// Cancelling reaches what is paused and what waits for its retry.
func TestCancelReachesWhatWaits(t *testing.T) {
	t.Parallel()
	s, r := newsroom(t, sink.Config{Inject: sink.Inject{TempFail: 1, TempFailAlways: true}}, "rate: unlimited, retry: [1h, 1h]")
	people := crowd(50)
	s.subscribe(people...)
	event := s.http.publish(`{"title":"later"}`)
	eventually(t, "all are deferred", func() bool {
		status, _, _ := s.http.send("GET", "/v1/events/"+event, "", "")
		return status == 200 && s.http.broadcast(event).Counts[fanfare.Deferred] == 50
	})
	s.mustRun("", "pause", "--broadcast", event)
	s.mustRun("", "cancel", "--broadcast", event)
	b := s.http.completed(event)
	if b.Counts[fanfare.Cancelled] != 50 || b.Counts.Total() != 50 || r.total() != 0 {
		t.Errorf("got %v, and %d mails", b.Counts, r.total())
	}
	if ran := s.run("", "resume", "--broadcast", event); ran.code != 1 || !strings.Contains(ran.err, "already ended") {
		t.Errorf("resuming what is over ended with %d: %s", ran.code, ran.err)
	}
}

// A relay that refuses everybody would spoil the whole broadcast.
func TestBroadcastPausesItselfWhenItsFirstMessagesAllFail(t *testing.T) {
	t.Parallel()
	s, r := newsroom(t, sink.Config{Inject: sink.Inject{PermFail: 1}}, "rate: 50/s, connections: 4")
	people := crowd(400)
	s.subscribe(people...)
	event := s.http.publish(`{"title":"to all"}`)
	var b fanfare.Broadcast
	eventually(t, "the broadcast pauses itself", func() bool {
		status, text, _ := s.http.send("GET", "/v1/events/"+event, "", "")
		if status == 200 {
			b = into[fanfare.Broadcast](t, text)
		}
		return b.State == "paused"
	})
	if !strings.Contains(b.Reason, "100") {
		t.Errorf("the reason is %q", b.Reason)
	}
	r.close()
	r.open(sink.Config{})
	s.mustRun("", "rate", "channel", "news/email", "unlimited")
	s.mustRun("", "resume", "--broadcast", event)
	b = s.http.completed(event)
	if failed := b.Counts[fanfare.Failed]; failed < 100 || failed > 200 || b.Counts[fanfare.Accepted] != 400-failed {
		t.Errorf("got %v", b.Counts)
	}
	var rest []string
	for _, d := range s.http.deliveries(event, "&state=accepted") {
		rest = append(rest, d.Address)
	}
	r.only(rest...)
}

// fanfareStatus is the part of the status that tests look at.
type fanfareStatus struct {
	Ready  bool `json:"ready"`
	Paused []struct {
		Scope  fanfare.Scope `json:"scope"`
		Reason string        `json:"reason"`
	} `json:"paused"`
	Parked     int `json:"parked"`
	Deliveries struct {
		Pending  int64 `json:"pending"`
		Deferred int64 `json:"deferred"`
	} `json:"deliveries"`
	Channels []struct {
		Name      string `json:"name"`
		State     string `json:"state"`
		LastError string `json:"last_error"`
	} `json:"channels"`
}

// elapsed is how many seconds ago an event was received, by the server's clock.
func (s *server) elapsed(event string) float64 {
	s.t.Helper()
	return time.Since(s.http.broadcast(event).Stages.Received).Seconds()
}
