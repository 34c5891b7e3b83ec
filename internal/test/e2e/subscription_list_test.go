package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

type subscriptionPage struct {
	Subscriptions []struct{ ID, Topic, Channel, To, Subscriber, State string }
	Next          string
}

// subscriptionsOf reads all pages of a list.
func (c *caller) subscriptionsOf(query string) (ids []string) {
	c.t.Helper()
	for cursor := ""; ; {
		page := into[subscriptionPage](c.t, c.must(200, "GET", "/v1/subscriptions?"+query+"&cursor="+cursor, "", ""))
		for _, s := range page.Subscriptions {
			ids = append(ids, s.ID)
		}
		if cursor = page.Next; cursor == "" {
			return ids
		}
	}
}

const otherTopic = `service: news
topics:
  weather: {template: story}
`

// The list of subscriptions is the same in pages of any size, and its filters
// choose what they say.
func TestSubscriptionsAreListedInPages(t *testing.T) {
	t.Parallel()
	s := serve(t)
	s.http.must(200, "POST", "/v1/apply", yaml, news("127.0.0.1:1", ""))
	s.http.must(200, "POST", "/v1/apply", yaml, otherTopic)
	s.subscribe(crowd(40)...)
	for i := range 10 {
		s.http.must(201, "PUT", fmt.Sprintf("/v1/subscriptions/w%d", i), plain, fmt.Sprintf(`{"topic":"weather","channel":"email","subscriber":"ada","to":"ada%d@example.org"}`, i))
	}
	s.http.must(204, "DELETE", "/v1/subscriptions/w3", "", "")
	all := s.http.subscriptionsOf("limit=1000")
	if len(all) != 50 {
		t.Fatalf("%d are listed", len(all))
	}
	if got := s.http.subscriptionsOf("limit=7"); !slices.Equal(got, all) {
		t.Errorf("in pages of 7: %v, in one: %v", got, all)
	}
	for query, want := range map[string]int{"topic=weather": 10, "state=ended": 1, "state=active": 49, "topic=weather&state=active": 9, "topic=story&channel=email": 40,
		"subscriber=ada": 10, "subscriber=ada3@example.org": 1, "subscriber=ada&state=active": 9, "subscriber=person7@example.org": 1} {
		if got := s.http.subscriptionsOf("limit=4&" + query); len(got) != want {
			t.Errorf("%s: %v", query, got)
		}
	}
	s.http.refused(422, "GET", "/v1/subscriptions?topic=wether", "", "")
	s.http.refused(404, "GET", "/v1/subscriptions?subscriber=nobody", "", "")
	first := into[subscriptionPage](t, s.http.must(200, "GET", "/v1/subscriptions?limit=5", "", ""))
	s.http.refused(422, "GET", "/v1/subscriptions?limit=5&topic=story&cursor="+first.Next, "", "")
}

// An export creates the same subscriptions in an empty server, and the export of that server
// is equal.
func TestAnExportIsAnImport(t *testing.T) {
	t.Parallel()
	one, two := serve(t), serve(t)
	for _, s := range []*server{one, two} {
		s.http.must(200, "POST", "/v1/apply", yaml, news("127.0.0.1:1", ""))
	}
	one.subscribe(crowd(20)...)
	for _, subscription := range []string{
		`{"id":"own","topic":"story","channel":"email","to":"a@example.org","filter":"event.level > 1","locale":"de","time_zone":"Europe/Vienna","attributes":{"a":"ü<&>"}}`,
		`{"topic":"story","channel":"email","to":"a@example.org","rule":"near","params":{"place":"Vienna"},"data":{"b":[1,2]}}`,
		`{"topic":"story","channel":"email","to":"first@example.org","subscriber":"ada"}`,
		`{"topic":"story","channel":"email","to":"second@example.org","subscriber":"ada"}`,
		`{"id":"over","topic":"story","channel":"email","to":"over@example.org"}`,
	} {
		one.http.subscribe(subscription)
	}
	one.http.must(204, "DELETE", "/v1/subscriptions/over", "", "")
	export := func(s *server) []string {
		_, text, header := s.http.send("GET", "/v1/subscriptions", "", "", "Accept", lines)
		if header.Get("Content-Type") != lines {
			t.Errorf("the type is %s", header.Get("Content-Type"))
		}
		all := strings.Split(strings.TrimSpace(text), "\n")
		slices.Sort(all)
		return all
	}
	was := export(one)
	if len(was) != 24 || strings.Contains(strings.Join(was, ""), "over") {
		t.Fatalf("%d lines: %v", len(was), was)
	}
	sum := into[summary](t, two.http.must(200, "POST", "/v1/subscriptions?quiet=true", lines, strings.Join(was, "\n")))
	if sum.Created != 24 || sum.Failed != 0 {
		t.Fatalf("imported: %+v", sum)
	}
	if is := export(two); !slices.Equal(is, was) {
		t.Errorf("exported\n%s\nthen\n%s", strings.Join(was, "\n"), strings.Join(is, "\n"))
	}
	one.http.refused(422, "GET", "/v1/subscriptions?state=ended", "", "", "Accept", lines)
}

// Of two who change a subscription that both have read, one is refused.
func TestPreconditionsOfASubscriptionHold(t *testing.T) {
	t.Parallel()
	s := serve(t)
	s.http.must(200, "POST", "/v1/apply", yaml, news("127.0.0.1:1", ""))
	put := func(status int, filter string, headers ...string) {
		t.Helper()
		s.http.must(status, "PUT", "/v1/subscriptions/mine", plain, `{"topic":"story","channel":"email","to":"a@example.org","filter":"`+filter+`"}`, headers...)
	}
	tag := func() string {
		_, _, header := s.http.send("GET", "/v1/subscriptions/mine", "", "")
		return header.Get("ETag")
	}
	put(412, "event.level > 1", "If-Match", "*")
	s.http.must(422, "GET", "/v1/subscribers?address=a@example.org&limit=0", "", "")
	put(201, "event.level > 1", "If-None-Match", "*")
	put(412, "event.level > 2", "If-None-Match", "*")
	first := tag()
	put(200, "event.level > 2", "If-Match", first)
	if second := tag(); second == first || first == "" {
		t.Errorf("the tags are %s and %s", first, second)
	}
	put(412, "event.level > 3", "If-Match", first)
	s.http.must(412, "DELETE", "/v1/subscriptions/mine", "", "", "If-Match", first)
	s.http.must(204, "DELETE", "/v1/subscriptions/mine", "", "", "If-Match", tag())
	s.http.must(412, "DELETE", "/v1/subscriptions/mine", "", "", "If-Match", "*")
	s.http.must(204, "DELETE", "/v1/subscriptions/mine", "", "")
}
