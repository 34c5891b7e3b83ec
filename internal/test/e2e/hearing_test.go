package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"fanfare.dev/fanfare/internal/sink"
)

// An ear is a receiver of webhooks that notes what it is told of people.
type ear struct {
	*httptest.Server
	mu    sync.Mutex
	heard map[string]int // how often a line was told, each event once
	ids   map[string]bool
	bad   []string
}

func listen(t *testing.T) *ear {
	t.Helper()
	e := &ear{heard: map[string]int{}, ids: map[string]bool{}}
	e.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err == nil {
			e.take(body)
		}
		w.WriteHeader(http.StatusNoContent)
	}))
	t.Cleanup(e.Close)
	return e
}

func (e *ear) take(body []byte) {
	var document struct {
		Data struct {
			Event struct {
				ID, Type string
				Data     struct {
					Kind, Source, Reason, Topic, Channel string
					Count                                int
					Subscriptions                        []struct {
						Subscription, Subscriber string
						Fields                   []string
					}
					Suppressions []struct{ Subscriber, Address string }
				}
			}
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	err := json.Unmarshal(body, &document)
	told := &document.Data.Event
	d := &told.Data
	if err != nil || strings.Contains(string(body), "@") || d.Count != len(d.Subscriptions)+len(d.Suppressions) || !strings.HasSuffix(told.Type, "."+d.Kind) {
		e.bad = append(e.bad, fmt.Sprintf("%v: %s", err, body))
	}
	if e.ids[told.ID] {
		return // a request that came again
	}
	e.ids[told.ID] = true
	for _, s := range d.Subscriptions {
		e.heard[strings.Join([]string{d.Kind, d.Source, d.Reason, d.Topic, d.Channel, s.Subscription, strings.Join(s.Fields, ",")}, " ")]++
	}
	for _, s := range d.Suppressions {
		e.heard[strings.Join([]string{d.Kind, d.Source, d.Reason, s.Address, s.Subscriber}, " ")]++
	}
}

// lines are what was told so far.
func (e *ear) lines() map[string]int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return maps.Clone(e.heard)
}

// A service hears of each thing that its people do, and that is done to them, once, by
// a webhook that names no address.
func TestAServiceHearsWhatItsPeopleDo(t *testing.T) {
	t.Parallel()
	s, r := newsroom(t, sink.Config{KeepFirst: 100}, "rate: unlimited, returns: bounces.example.org",
		"--inbound", "127.0.0.1:0", "--inbound-domains", "bounces.example.org", "--allow-networks", "127.0.0.0/8")
	e := listen(t)
	s.http.must(200, "POST", "/v1/apply", yaml, opened)
	s.http.must(200, "POST", "/v1/apply", yaml, `
service: news
channels:
  ear: {driver: webhook, allow_http: true, rate: unlimited, retry: [1s, 1s, 1s]}
topics:
  fanfare.subscriptions: {}
  fanfare.suppressions: {}
`)
	for _, topic := range []string{"fanfare.subscriptions", "fanfare.suppressions"} {
		s.http.subscribe(fmt.Sprintf(`{"id":%q,"topic":%q,"channel":"ear","to":%q}`, topic, topic, e.URL+"/"+topic))
	}
	for _, who := range []string{"ann", "bob", "cat", "dan", "eve", "gus"} {
		s.http.subscribe(fmt.Sprintf(`{"id":%q,"topic":"story","channel":"email","to":"%s@example.org"}`, who, who))
	}
	s.http.completed(s.http.publish(`{"title":"first"}`))
	people := s.http.with("")
	var want []string
	hears := func(line string) {
		t.Helper()
		want = append(want, line)
		eventuallyWith(t, line, func() bool { return e.lines()[line] > 0 }, func() string { return fmt.Sprint(e.lines()) })
	}

	people.must(200, "POST", linkOf(t, r.one("ann@example.org"), "u"), form, "List-Unsubscribe=One-Click")
	hears("unsubscribed one_click  story email ann ")

	link := linkOf(t, r.one("bob@example.org"), "u")
	choice := on(t, people.must(200, "GET", link, "", ""), `value="(sub-[0-9a-z]+)"`)
	left := people.must(200, "POST", link, form, "page=1&s="+choice+"&why=often")
	hears("unsubscribed page often story email bob ")
	people.must(200, "POST", on(t, left, `action="\.\.(/r/[^"]+)"`), form, "")
	hears("resubscribed undo  story email bob ")

	from := map[string]string{}
	for _, m := range r.sink.Messages() {
		from[m.To[0]] = m.From
		if found := leaveAddress.FindStringSubmatch(string(m.Body)); m.To[0] == "cat@example.org" && found != nil {
			s.mailer(s.inbound().Listen).mail("cat@example.com", found[1], "Subject: unsubscribe\r\n\r\n", "250")
		}
	}
	hears("unsubscribed mail  story email cat ")

	s.mailer(s.inbound().Listen).mail("", from["dan@example.org"], undelivered("5.1.1", "550 5.1.1 User unknown", "dan@example.org"), "250")
	dan, eve := s.personOf("dan@example.org"), s.personOf("eve@example.org")
	hears("suppressed return hard_bounce mail " + dan)
	s.http.must(204, "DELETE", "/v1/suppressions?address=dan@example.org", "", "")
	hears("lifted api hard_bounce mail " + dan)
	s.http.must(200, "POST", "/v1/suppressions", plain, `{"address":"eve@example.org","reason":"unsubscribed"}`)
	hears("suppressed api unsubscribed mail " + eve)
	s.http.must(200, "POST", "/v1/suppression-list?quiet=true", lines, `{"address":"nobody@example.org"}`+"\n"+`{"address":"gus@example.org","reason":"soft_bounces"}`+"\n")
	hears("suppressed api soft_bounces mail " + s.personOf("gus@example.org"))

	s.http.must(204, "DELETE", "/v1/subscriptions/gus", "", "")
	hears("unsubscribed api  story email gus ")

	signUp(t, people, "fay@example.org", nil)
	people.must(200, "POST", linkOf(t, r.awaited(t, "fay@example.org", 1)[0], "c"), form, "")
	fay := into[struct{ Subscriptions []struct{ ID string } }](t, s.http.must(200, "GET", "/v1/subscriptions?subscriber=fay@example.org", "", "")).Subscriptions[0].ID
	hears("subscribed signup  storm email " + fay + " ")
	s.http.must(202, "POST", "/v1/topics/storm/events", plain, `{"title":"x","level":5}`)
	own := linkOf(t, r.awaited(t, "fay@example.org", 2)[1], "p")
	place := on(t, people.must(200, "GET", own, "", ""), `name="s" value="(sub-[0-9a-z]+)"`)
	people.must(200, "POST", own, form, url.Values{"do": {"save"}, "s": {place}, "keep-" + place: {"1"}, "cadence-" + place: {"daily 08:00"}}.Encode())
	hears("changed preferences  storm email " + fay + " cadence")
	people.must(200, "POST", own, form, url.Values{"do": {"save"}, "s": {place}}.Encode())
	hears("unsubscribed preferences  storm email " + fay + " ")

	s.mustStop()
	s.start() // and nothing of it comes again
	s.http.subscribe(`{"id":"last","topic":"story","channel":"email","to":"hal@example.org"}`)
	s.http.must(204, "DELETE", "/v1/subscriptions/last", "", "")
	hears("unsubscribed api  story email last ")
	slices.Sort(want)
	got := e.lines()
	e.mu.Lock()
	defer e.mu.Unlock()
	if told := slices.Sorted(maps.Keys(got)); !slices.Equal(told, want) || len(e.bad) > 0 {
		t.Errorf("heard %q, want %q; and %q", told, want, e.bad)
	}
	for line, times := range got {
		if times != 1 {
			t.Errorf("heard %d times: %s", times, line)
		}
	}
}
