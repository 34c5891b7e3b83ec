package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/sink"
)

const diskBytes = 64 << 20

// onSmallDisk is newsroom for a server whose disk can be filled. The floor
// would close the intake before the disk is full.
func onSmallDisk(t *testing.T, settings string, flags ...string) (*server, *relay) {
	t.Helper()
	r := newRelay(t, sink.Config{})
	s := serveOnDisk(t, diskBytes, flags...)
	s.http.must(200, "POST", "/v1/apply", yaml, news(r.addr, settings))
	return s, r
}

// A full disk stops an import at a line that is named; what stands before it is
// stored, nothing behind it, and with space the rest follows.
func TestFullDiskStopsAnImportAtALineThatIsNamed(t *testing.T) {
	t.Parallel()
	for _, durability := range []string{"fsync", "relaxed"} {
		t.Run(durability, func(t *testing.T) {
			t.Parallel()
			s, _ := onSmallDisk(t, "", "--durability", durability)
			const total = 40_000
			var people bytes.Buffer
			for i := range total {
				fmt.Fprintf(&people, `{"id":"p%d","topic":"story","channel":"email","to":"person%d@example.org","data":{"why":%q}}`+"\n", i, i, strings.Repeat("x", 200))
			}
			full := s.fill(4 << 20)
			answer := s.http.must(200, "POST", "/v1/subscriptions", lines, people.String())
			answers := strings.Split(strings.TrimSpace(answer), "\n")
			var last struct {
				Line  int
				Error member
			}
			if err := json.Unmarshal([]byte(answers[len(answers)-1]), &last); err != nil || last.Error.Code != "disk_full" {
				t.Fatalf("the last of %d answers is %s", len(answers), answers[len(answers)-1])
			}
			stored := last.Line - 1
			if stored != len(answers)-1 || stored == 0 || !strings.Contains(last.Error.Hint, "lines before this one") {
				t.Errorf("%d lines were answered before line %d was refused: %+v", len(answers)-1, last.Line, last.Error)
			}
			s.http.must(200, "GET", fmt.Sprintf("/v1/subscriptions/p%d", stored-1), "", "")
			s.http.must(404, "GET", fmt.Sprintf("/v1/subscriptions/p%d", stored), "", "")
			if got := s.http.refused(507, "POST", "/v1/subscriptions?quiet=true", lines, people.String()); got.Line == 0 || got.Code != "disk_full" {
				t.Errorf("the short answer is %+v", got)
			}
			if ran := s.run(people.String(), "import", "subscriptions", "-"); ran.code != 1 || !strings.Contains(ran.err, "line") || !strings.Contains(ran.err, "full") {
				t.Errorf("the command line ended with %d: %s%s", ran.code, ran.out, ran.err)
			}
			s.http.must(200, "GET", "/v1/status", "", "")

			full.drop()
			sum := into[summary](t, s.http.must(200, "POST", "/v1/subscriptions?quiet=true", lines, people.String()))
			if sum.Created+sum.Updated != total || sum.Updated < stored || sum.Failed != 0 { // the two behind it may have found space for a few more
				t.Errorf("with space: %+v, want %d in all and at least %d updated", sum, total, stored)
			}
			s.mustRun("", "pause", "--all")
			event := s.http.publish(`{"title":"to all"}`)
			s.frozen(event)
			if b := s.http.broadcast(event); b.Matched != total {
				t.Errorf("the event is for %d subscriptions, want %d", b.Matched, total)
			}
		})
	}
}

// Events that a full disk cannot take are refused, those that were accepted are
// kept, and with space it goes on without a restart.
func TestFullDiskRefusesEventsAndRecovers(t *testing.T) {
	t.Parallel()
	for _, durability := range []string{"fsync", "relaxed"} {
		t.Run(durability, func(t *testing.T) {
			t.Parallel()
			s, r := onSmallDisk(t, "", "--durability", durability)
			s.subscribe("a@example.org")
			s.http.completed(s.http.publish(`{"title":"before"}`))
			full := s.fill(0)
			taken := map[string]bool{"before": true}
			refused := 0
			for i := 0; refused < 3; i++ {
				title := fmt.Sprintf("during %d", i)
				data := fmt.Sprintf(`{"title":%q,"place":%q}`, title, strings.Repeat("x", 100_000))
				switch status, text, _ := s.http.send("POST", "/v1/topics/story/events?id=/title", plain, data); status {
				case 202:
					taken[title] = true
				case 507:
					refused++
				default:
					t.Fatalf("got %d: %s", status, text)
				}
			}
			full.drop()
			eventually(t, "events are taken again", func() bool {
				status, _, _ := s.http.send("POST", "/v1/topics/story/events?id=/title", plain, `{"title":"after"}`)
				return status == 202
			})
			taken["after"] = true
			eventuallyWith(t, "all that was taken is sent", func() bool { return r.total() >= len(taken) }, func() string {
				return fmt.Sprintf("%d of %d", r.total(), len(taken))
			})
			seen := map[string]int{}
			for _, mail := range r.of("a@example.org") {
				seen[field(mail, "Subject")]++
			}
			for title := range taken {
				if seen[title] != 1 {
					t.Errorf("%q was sent %d times", title, seen[title])
				}
			}
			if len(seen) != len(taken) {
				t.Errorf("sent %v, taken %v", seen, taken)
			}
		})
	}
}

// A disk that fills up in the middle of a broadcast stops the sending, since
// what came of a mail must be kept before the next one leaves; with space it goes
// on, and nobody is left out or written to twice.
func TestFullDiskInABroadcastLosesAndRepeatsNothing(t *testing.T) {
	t.Parallel()
	for _, durability := range []string{"fsync", "relaxed"} {
		t.Run(durability, func(t *testing.T) {
			t.Parallel()
			s, r := onSmallDisk(t, "rate: unlimited, connections: 10", "--durability", durability)
			letGo := r.hold(300)
			people := crowd(3000)
			s.subscribe(people...)
			event := s.http.publish(`{"title":"to all"}`)
			eventually(t, "some mails", func() bool { return r.total() > 300 })
			full := s.fill(0)
			letGo()
			eventually(t, "the log tells why nothing leaves", func() bool { return strings.Contains(s.logged(), "cannot record outcomes") })
			s.http.must(200, "GET", "/v1/status", "", "")
			s.http.must(200, "GET", "/healthz", "", "")
			full.drop()
			b := s.http.completed(event)
			if b.Counts[fanfare.Accepted] != int64(len(people)) {
				t.Errorf("got %v", b.Counts)
			}
			r.only(people...)
			// All is well again, for what comes later too.
			if b := s.http.completed(s.http.publish(`{"title":"next"}`)); b.Counts[fanfare.Accepted] != int64(len(people)) {
				t.Errorf("the next event: %v", b.Counts)
			}
		})
	}
}

// Below the floor nothing new is taken, and what was accepted goes on.
func TestDiskFloorClosesTheIntakeAndNotTheDelivery(t *testing.T) {
	t.Parallel()
	s, r := onSmallDisk(t, "rate: unlimited, connections: 4", "--disk-floor", "24MB")
	letGo := r.hold(50)
	people := crowd(1000)
	s.subscribe(people...)
	event := s.http.publish(`{"title":"accepted"}`)
	eventually(t, "some mails", func() bool { return r.total() > 50 })
	full := s.fill(16 << 20)
	// A story that was still taken would share the channel with the first.
	eventually(t, "subscriptions are refused", func() bool {
		status, _, _ := s.http.send("POST", "/v1/subscriptions", plain, `{"topic":"story","channel":"email","to":"late@example.org"}`)
		return status == 507
	})
	if got := s.http.refused(507, "POST", "/v1/topics/story/events", plain, `{"title":"no"}`); got.Code != "disk_full" || !strings.Contains(got.Hint, "disk_floor") {
		t.Errorf("refused with %+v", got)
	}
	letGo()
	// An unsubscribe is always taken.
	s.http.must(204, "DELETE", "/v1/subscriptions/"+s.idOf("person999@example.org"), "", "")
	b := s.http.completed(event)
	if b.Counts[fanfare.Accepted]+b.Counts[fanfare.Suppressed] != int64(len(people)) {
		t.Errorf("got %v", b.Counts)
	}
	full.drop()
	eventually(t, "events are taken again", func() bool {
		status, _, _ := s.http.send("POST", "/v1/topics/story/events", plain, `{"title":"again"}`)
		return status == 202
	})
}

// idOf returns the id of the one subscription of a person, by putting it again.
func (s *server) idOf(person string) string {
	s.t.Helper()
	for _, b := range into[struct{ Broadcasts []fanfare.Broadcast }](s.t, s.http.must(200, "GET", "/v1/broadcasts", "", "")).Broadcasts {
		for _, d := range s.http.deliveries(b.Event, "&recipient="+person) {
			return d.Subscriptions[0]
		}
	}
	s.t.Fatalf("no subscription of %s", person)
	return ""
}
