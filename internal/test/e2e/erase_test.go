package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/sink"
	"fanfare.dev/fanfare/internal/store/storetest"
)

// foundIn lists the files of the data directory, and the tables of the database,
// that have one of the names in them, whatever upper and lower case alike.
func (s *server) foundIn(names ...string) []string {
	s.t.Helper()
	found := storetest.Find(s.t, s.dir, names...)
	if s.database != "" {
		found = append(found, storetest.Find(s.t, s.database, names...)...)
	}
	return found
}

// crowdToErase are people of whom some will be erased. Their local parts are
// nowhere but in their addresses.
const crowdToErase = 1000

func localPart(i int) string { return fmt.Sprintf("Xq%04dzw", i) }

// No file of the server contains an erased person, in any state of their messages. The counts
// stay.
func TestErasedPersonIsInNoFile(t *testing.T) {
	t.Parallel()
	s, r := newsroom(t, sink.Config{Inject: sink.Inject{TempFail: 0.2, TempFailAlways: true, PermFail: 0.1, Seed: 7}}, "rate: unlimited, retry: [10m]")
	var b strings.Builder
	for i := range crowdToErase {
		address := localPart(i) + "@Example.org"
		fmt.Fprintf(&b, `{"topic":"story","channel":"email","to":%q,"subscriber":"id-%s","locale":"de","attributes":{"known as":%q},"data":{"mine":%q}}`+"\n", address, localPart(i), localPart(i), localPart(i))
		if i%10 == 0 {
			fmt.Fprintf(&b, `{"id":"own-%s","topic":"story","channel":"email","to":%q,"filter":"event.title != \"%s\""}`+"\n", localPart(i), address, localPart(i))
		}
	}
	if sum := into[summary](t, s.http.must(200, "POST", "/v1/subscriptions?quiet=true", lines, b.String())); sum.Failed > 0 {
		t.Fatalf("%+v", sum)
	}
	first := s.http.publish(`{"title":"first"}`)
	eventually(t, "everybody was tried", func() bool {
		status, text, _ := s.http.send("GET", "/v1/events/"+first, "", "")
		if status != 200 {
			return false
		}
		c := into[fanfare.Broadcast](t, text).Counts
		return c.Total() == crowdToErase && c[fanfare.Pending] == 0
	})
	if c := s.http.broadcast(first).Counts; c[fanfare.Deferred] < 100 || c[fanfare.Failed] < 50 || c[fanfare.Accepted] < 500 {
		t.Fatalf("not all kinds of outcomes: %v", c)
	}
	var erased []string // local parts
	for i := 0; i < crowdToErase; i += 50 {
		erased = append(erased, localPart(i))
		s.http.must(200, "PATCH", "/v1/subscribers/id-"+localPart(i), "application/merge-patch+json", fmt.Sprintf(`{"time_zone":"Europe/Vienna","attributes":{"of":%q}}`, localPart(i)))
		s.http.must(201, "POST", "/v1/messages", plain, fmt.Sprintf(
			`{"channel":"email","to":"%[1]s@example.org","content":{"subject":"For %[1]s","text":"You are %[1]s."},"data":{"who":%[1]q},"reference":"about %[1]s"}`, localPart(i)))
	}
	list := into[struct{ ID string }](t, s.http.must(201, "POST", "/v1/messages", plain, fmt.Sprintf(
		`{"channel":"email","recipients":[{"to":"%[1]s@example.org","data":{"n":%[1]q}},{"to":"%[2]s@example.org","data":{"n":%[2]q}}],"content":{"subject":"both","text":"{{ sub.n }}"}}`, localPart(0), localPart(1))))
	s.mustRun("", "pause", "--all")
	held := s.http.publish(`{"title":"held"}`)
	s.frozen(held)
	before := s.http.broadcast(first).Counts

	if files := s.foundIn(erased[0]); len(files) < 3 {
		t.Fatalf("the test looks in the wrong place: before, the name is in %v", files)
	}
	for i, local := range erased {
		got := into[struct{ Subscriptions, Deliveries int }](t, s.http.must(200, "POST", "/v1/subscribers/id-"+local+"/erase", plain, fmt.Sprintf(`{"suppress":%v}`, i%2 == 0)))
		if got.Subscriptions != 2 || got.Deliveries < 3 {
			t.Errorf("%s: %+v", local, got)
		}
	}
	check := func(when string) {
		t.Helper()
		if files := s.foundIn(erased...); len(files) > 0 {
			t.Errorf("%s: %d findings, such as %v", when, len(files), files[:min(10, len(files))])
		}
		if files := s.foundIn(localPart(1)); len(files) < 2 {
			t.Errorf("%s: who was not erased is in %v only", when, files)
		}
		after := s.http.broadcast(first).Counts
		if after.Total() != before.Total() || after[fanfare.Accepted] != before[fanfare.Accepted] || after[fanfare.Failed] != before[fanfare.Failed] ||
			after[fanfare.Deferred]+after[fanfare.Suppressed] != before[fanfare.Deferred] {
			t.Errorf("%s: the counts were %v and are %v", when, before, after)
		}
		s.http.must(404, "GET", "/v1/subscribers/id-"+erased[0], "", "")
		s.http.must(404, "GET", "/v1/subscribers/id-"+erased[0]+"/deliveries", "", "")
		s.http.must(404, "GET", "/v1/subscribers/"+erased[0]+"@example.org/deliveries", "", "")
		for _, d := range s.http.deliveries(first, "") {
			for _, local := range erased {
				if strings.Contains(fmt.Sprint(d), local) {
					t.Errorf("%s: a delivery still says %+v", when, d)
				}
			}
		}
	}
	check("while the server runs")
	s.mustRun("", "resume", "--all")
	b2 := s.http.completedButDeferred(held)
	if b2.Counts[fanfare.Suppressed] != int64(len(erased)) {
		t.Errorf("of what was held: %v", b2.Counts)
	}
	if mail := r.of(erased[0] + "@example.org"); len(mail) > 3 {
		t.Errorf("who is erased got %d mails", len(mail))
	}
	check("after what was held")
	s.mustStop()
	if files := s.foundIn(erased...); len(files) > 0 {
		t.Errorf("after the end: %v", files)
	}
	s.start()
	check("after a restart")
	if got := s.http.must(200, "GET", "/v1/messages/"+list.ID, "", ""); !strings.Contains(got, `"recipients":2`) {
		t.Errorf("the message to two: %s", got)
	}

	// On the suppression list is every second one, and only there.
	put := fmt.Sprintf(`{"topic":"story","channel":"email","to":"%s@example.org"}`, erased[0])
	if got := s.http.refused(409, "POST", "/v1/subscriptions", plain, put); got.Pointer != "/to" || !strings.Contains(got.Hint, "/v1/suppressions") {
		t.Errorf("%+v", got)
	}
	s.http.must(409, "PUT", "/v1/subscribers/new", plain, fmt.Sprintf(`{"addresses":[{"kind":"mail","address":"%s@example.org"}]}`, erased[0]))
	s.http.must(409, "POST", "/v1/messages", plain, fmt.Sprintf(`{"channel":"email","to":"%s@example.org","content":{"subject":"a","text":"b"}}`, erased[0]))
	if got := s.http.must(200, "GET", "/v1/suppressions?address="+erased[0]+"@example.org", "", ""); !strings.Contains(got, `"erased"`) {
		t.Errorf("%s", got)
	}
	s.http.must(404, "GET", "/v1/suppressions?address="+erased[1]+"@example.org", "", "")
	if files := s.foundIn(erased...); len(files) > 0 {
		t.Errorf("after what was refused: %v", files)
	}
	s.http.must(204, "DELETE", "/v1/suppressions?address="+erased[0]+"@example.org", "", "")
	s.http.must(201, "POST", "/v1/subscriptions", plain, put)
	if got := s.http.must(200, "GET", "/v1/audit?kind=subscriber&limit=1000", "", ""); strings.Count(got, `"update"`) != len(erased) || strings.Count(got, `"erase"`) != len(erased) {
		t.Errorf("the audit: %s", got)
	}
	if info, err := os.Stat(s.path("suppression.key")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the key of the list: %v, %v", info, err)
	}
}

// completedButDeferred waits until nothing of an event is pending.
func (c *caller) completedButDeferred(event string) fanfare.Broadcast {
	c.t.Helper()
	var b fanfare.Broadcast
	eventuallyWith(c.t, "everything of "+event+" was tried", func() bool {
		b = c.broadcast(event)
		return b.Counts.Total() == b.Messages && b.Counts[fanfare.Pending] == 0
	}, func() string { text, _ := json.Marshal(b); return string(text) })
	return b
}
