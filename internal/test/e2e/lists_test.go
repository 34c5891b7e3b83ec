package e2e

import (
	"net/url"
	"slices"
	"testing"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/sink"
)

// aPage is a part of any of the lists of what happened.
type aPage struct {
	Events, Broadcasts []fanfare.Broadcast
	Deliveries         []fanfare.Delivery
	Next               string
}

// ids names the members of a page.
func (p *aPage) ids() []string {
	var ids []string
	for _, b := range append(p.Events, p.Broadcasts...) {
		ids = append(ids, b.Event)
	}
	for _, d := range p.Deliveries {
		ids = append(ids, d.ID)
	}
	return ids
}

// all reads a list page by page.
func (c *caller) all(path string, query url.Values) []string {
	c.t.Helper()
	var ids []string
	for {
		page := into[aPage](c.t, c.must(200, "GET", path+"?"+query.Encode(), "", ""))
		if ids = append(ids, page.ids()...); page.Next == "" {
			return ids
		}
		query.Set("cursor", page.Next)
	}
}

func TestListsOfWhatHappenedArePagedAndFiltered(t *testing.T) {
	t.Parallel()
	s, _ := newsroom(t, sink.Config{}, "")
	s.subscribe("reader@example.org")
	var made []string
	var middle time.Time
	for i := range 7 {
		lane := "?lane=normal"
		if i%2 == 1 {
			lane = "?lane=urgent"
		}
		id := into[accepted](t, s.http.must(202, "POST", "/v1/topics/story/events"+lane, plain, `{"title":"news"}`)).Events[0].ID
		if b := s.http.completed(id); i == 3 {
			middle = b.Stages.Kept
		}
		made = append(made, id)
	}
	slices.Reverse(made)
	urgent := []string{made[1], made[3], made[5]}

	for _, list := range []string{"/v1/events", "/v1/broadcasts"} {
		for name, test := range map[string]struct {
			query url.Values
			want  []string
		}{
			"all":           {url.Values{}, made},
			"by lane":       {url.Values{"lane": {"urgent"}}, urgent},
			"by topic":      {url.Values{"topic": {"story"}}, made},
			"another topic": {url.Values{"topic": {"weather"}}, nil},
			"completed":     {url.Values{"state": {"completed"}}, made},
			"running":       {url.Values{"state": {"running"}}, nil},
			"since":         {url.Values{"since": {middle.Format(time.RFC3339Nano)}}, made[:4]},
			"until":         {url.Values{"until": {middle.Format(time.RFC3339Nano)}}, made[4:]},
		} {
			test.query.Set("limit", "2")
			if got := s.http.all(list, test.query); !slices.Equal(got, test.want) {
				t.Errorf("%s, %s: %v, want %v", list, name, got, test.want)
			}
		}
	}
	var got []string
	for _, id := range s.http.all("/v1/subscribers/reader@example.org/deliveries", url.Values{"limit": {"3"}, "channel": {"email"}, "state": {"accepted"}}) {
		d := into[fanfare.Delivery](t, s.http.must(200, "GET", "/v1/deliveries/"+id, "", ""))
		if d.ID != id || d.Address != "reader@example.org" || len(d.Attempts) != 1 {
			t.Errorf("%+v", d)
		}
		got = append(got, d.Event)
	}
	if !slices.Equal(got, made) {
		t.Errorf("the history has %v, want %v", got, made)
	}

	next := into[aPage](t, s.http.must(200, "GET", "/v1/events?limit=2", "", "")).Next
	for _, wrong := range []string{"/v1/broadcasts?limit=2&cursor=" + next, "/v1/events?limit=2&lane=urgent&cursor=" + next, "/v1/events?cursor=x", "/v1/parked?cursor=" + next, "/v1/events?since=yesterday"} {
		if got := s.http.refused(422, "GET", wrong, "", ""); got.Code != "invalid" {
			t.Errorf("%s: %+v", wrong, got)
		}
	}
	s.http.must(404, "GET", "/v1/deliveries/dlv-20261120-40041-ffff", "", "")
	s.http.must(404, "GET", "/v1/deliveries/nonsense", "", "")
}

func TestKnownContentIsNotSentAgain(t *testing.T) {
	t.Parallel()
	s, _ := newsroom(t, sink.Config{}, "")
	d := described(s)
	s.http.must(201, "PUT", "/v1/subscribers/reader", plain, `{"addresses":[{"kind":"mail","address":"reader@example.org"}]}`)
	s.http.must(201, "PUT", "/v1/subscriptions/mine", plain, `{"topic":"story","channel":"email","subscriber":"reader"}`)
	known := map[string]string{"/v1/subscribers/{id}": "/v1/subscribers/reader", "/v1/subscriptions/{id}": "/v1/subscriptions/mine"}
	for _, op := range d.operations() {
		path := known[op.path]
		if op.method != "GET" || path == "" {
			continue
		}
		_, _, header := s.http.send("GET", path, "", "")
		tag := header.Get("ETag")
		status, body, header := s.http.send("GET", path, "", "", "If-None-Match", `"other", W/`+tag)
		if status != 304 || body != "" || header.Get("ETag") != tag || tag == "" {
			t.Errorf("%s with its tag %s: %d %v %s", path, tag, status, header, body)
		}
		if err := d.answered(op, status, header, body); err != nil {
			t.Errorf("%s: %v", path, err)
		}
		if status, body, _ := s.http.send("GET", path, "", "", "If-None-Match", `"other"`); status != 200 || body == "" {
			t.Errorf("%s with another tag: %d", path, status)
		}
	}
}
