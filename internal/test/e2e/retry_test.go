package e2e

import (
	"strings"
	"testing"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/sink"
)

func TestRefusalsForNowAreRetriedAndForGoodAreNot(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, settings string
		inject         sink.Inject
		state          fanfare.State
		attempts       []fanfare.Attempt // number, state and code
		text           string            // in the last one
	}{
		{"4xx once", "rate: unlimited, retry: [1s, 1s]", sink.Inject{TempFail: 1}, fanfare.Accepted,
			[]fanfare.Attempt{{Number: 1, Status: "deferred", Code: 450}, {Number: 2, Status: "accepted", Code: 250}}, ""},
		{"4xx after the body", "rate: unlimited, retry: [1s, 1s]", sink.Inject{TempFail: 1, At: sink.AtBody}, fanfare.Accepted,
			[]fanfare.Attempt{{Number: 1, Status: "deferred", Code: 451}, {Number: 2, Status: "accepted", Code: 250}}, ""},
		{"4xx always", "rate: unlimited, retry: [1s, 1s]", sink.Inject{TempFail: 1, TempFailAlways: true}, fanfare.Failed,
			[]fanfare.Attempt{{Number: 1, Status: "deferred", Code: 450}, {Number: 2, Status: "deferred", Code: 450}, {Number: 3, Status: "failed", Code: 450}}, "exhausted"},
		{"5xx", "rate: unlimited, retry: [1s, 1s]", sink.Inject{PermFail: 1}, fanfare.Failed,
			[]fanfare.Attempt{{Number: 1, Status: "failed", Code: 550}}, "no such person"},
		{"5xx at DATA", "rate: unlimited, retry: [1s, 1s]", sink.Inject{PermFail: 1, At: sink.AtData}, fanfare.Failed,
			[]fanfare.Attempt{{Number: 1, Status: "failed", Code: 554}}, ""},
		{"expiry before the next try", "rate: unlimited, expiry: 1h, retry: [1s, 2h]", sink.Inject{TempFail: 1, TempFailAlways: true}, fanfare.Expired,
			nil, "expire"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s, r := newsroom(t, sink.Config{Inject: test.inject}, test.settings)
			people := crowd(4) // fewer than the failures in a row that suspend a destination
			s.subscribe(people...)
			event := s.http.publish(`{"title":"x"}`)
			b := s.http.completed(event)
			if b.Counts[test.state] != int64(len(people)) || b.Counts.Total() != int64(len(people)) {
				t.Fatalf("got %v, want all %s", b.Counts, test.state)
			}
			for _, d := range s.http.deliveries(event, "") {
				last := d.Attempts[len(d.Attempts)-1]
				if d.State != test.state.String() || !strings.Contains(last.Text, test.text) || last.Relay != r.addr && test.state != fanfare.Expired {
					t.Errorf("%s is %s: %+v", d.Address, d.State, last)
				}
				for i, want := range test.attempts {
					if len(d.Attempts) != len(test.attempts) {
						t.Fatalf("%s: attempts %+v", d.Address, d.Attempts)
					}
					got := d.Attempts[i]
					if got.Number != want.Number || got.Status != want.Status || got.Code != want.Code {
						t.Errorf("%s: attempt %+v, want %+v", d.Address, got, want)
					}
					if got.Status == "deferred" && !got.NextAt.After(got.At) {
						t.Errorf("%s: the next attempt is due at %v, after %v", d.Address, got.NextAt, got.At)
					}
				}
			}
			if test.state == fanfare.Accepted && test.inject.At == "" {
				r.only(people...)
			}
		})
	}
}

// A message that could not be sent in time expires, even if it was only paused.
func TestPausedBeyondItsTimeIsExpired(t *testing.T) {
	t.Parallel()
	s, r := newsroom(t, sink.Config{}, "rate: unlimited, expiry: 1s")
	s.subscribe(crowd(10)...)
	s.mustRun("", "pause", "--all")
	event := s.http.publish(`{"title":"late"}`)
	later := s.http.publish(`{"title":"tick"}`)
	eventually(t, "its time is over", func() bool {
		status, _, _ := s.http.send("GET", "/v1/events/"+later, "", "")
		return status == 200 && s.elapsed(event) > 1.5
	})
	s.mustRun("", "resume", "--all")
	b := s.http.completed(event)
	if b.Counts[fanfare.Expired] != 10 || r.total() != 0 {
		t.Errorf("got %v, and %d mails", b.Counts, r.total())
	}
}

// A relay that is away costs no attempt: mails wait until it is back.
func TestUnreachableRelayConsumesNoAttempts(t *testing.T) {
	t.Parallel()
	r := newRelay(t, sink.Config{})
	r.close() // its port refuses connections
	s := serve(t)
	s.http.must(200, "POST", "/v1/apply", yaml, news(r.addr, "rate: unlimited, retry: [1s]"))
	people := crowd(50)
	s.subscribe(people...)
	event := s.http.publish(`{"title":"waits"}`)
	eventually(t, "the status tells why nothing leaves", func() bool {
		status := into[fanfareStatus](t, s.mustRun("", "status", "--json"))
		return len(status.Channels) == 1 && strings.Contains(status.Channels[0].LastError, "refused")
	})
	if got := s.http.broadcast(event).Counts; got[fanfare.Pending] != 50 || got.Total() != 50 {
		t.Errorf("got %v, want all pending", got)
	}
	r.open(sink.Config{})
	b := s.http.completed(event)
	if b.Counts[fanfare.Accepted] != 50 {
		t.Errorf("got %v", b.Counts)
	}
	r.only(people...)
	for _, d := range s.http.deliveries(event, "") {
		if len(d.Attempts) != 1 {
			t.Errorf("%s took %+v", d.Address, d.Attempts)
		}
	}
}

// A relay that hangs up costs at most one repeated mail for each time.
func TestHangingUpRelayLosesNothing(t *testing.T) {
	t.Parallel()
	s, r := newsroom(t, sink.Config{Inject: sink.Inject{DropBeforeData: 0.01, DropInData: 0.01, DropBeforeReply: 0.01}}, "rate: unlimited, connections: 10, retry: [1s, 1s, 1s, 1s, 1s]")
	people := crowd(1000)
	s.subscribe(people...)
	s.http.completed(s.http.publish(`{"title":"to all"}`))
	got := r.sink.Stats()
	if got.Unique != int64(len(people)) || got.Duplicates > got.DroppedBeforeReply {
		t.Errorf("got %+v: want all people, and no more duplicates than connections that were dropped before the reply", got)
	}
	if got.DroppedBeforeData+got.DroppedInData+got.DroppedBeforeReply == 0 {
		t.Error("nothing was dropped")
	}
}
