package e2e

import (
	"regexp"
	"strings"
	"testing"

	"fanfare.dev/fanfare/internal/sink"
)

const form = "application/x-www-form-urlencoded"

// linkOf is the path of the first link of a mail that goes to a page.
func linkOf(t *testing.T, mail, page string) string {
	t.Helper()
	flat := strings.NewReplacer("=\r\n", "", "=3D", "=").Replace(mail)
	found := regexp.MustCompile(`https://news\.example\.org(/` + page + `/[A-Za-z0-9_-]+)`).FindStringSubmatch(flat)
	if found == nil {
		t.Fatalf("no link to /%s/ in %s", page, mail)
	}
	return found[1]
}

// on is the first match of a pattern on a page.
func on(t *testing.T, page, pattern string) string {
	t.Helper()
	found := regexp.MustCompile(pattern).FindStringSubmatch(page)
	if found == nil {
		t.Fatalf("no %s on the page: %s", pattern, page)
	}
	return found[len(found)-1]
}

func states(c *caller, ids ...string) (all string) {
	for _, id := range ids {
		all += into[struct{ State string }](c.t, c.must(200, "GET", "/v1/subscriptions/"+id, "", "")).State + " "
	}
	return all
}

// The link of a mail lets its reader choose which subscriptions end, and undo it.
func TestSubscriptionsToEndAreChosenAndCanBeRestored(t *testing.T) {
	t.Parallel()
	s, r := newsroom(t, sink.Config{}, "")
	s.http.must(200, "POST", "/v1/apply", yaml, "service: news\ntitle: The Daily\ntopics:\n  weather: {title: Storms & floods, template: story}\n")
	s.http.subscribe(`{"id":"one","topic":"story","channel":"email","to":"ada@example.org"}`)
	s.http.subscribe(`{"id":"two","topic":"weather","channel":"email","to":"ada@example.org"}`)
	s.http.subscribe(`{"id":"third","topic":"weather","channel":"email","to":"ada@example.org","filter":"event.level > 3"}`)
	s.http.subscribe(`{"id":"theirs","topic":"weather","channel":"email","to":"bob@example.org"}`)
	s.http.completed(s.http.publish(`{"title":"first"}`))
	link, people := linkOf(t, r.one("ada@example.org"), "u"), s.http.with("")

	page := people.must(200, "GET", link, "", "")
	if strings.Count(page, `type="checkbox"`) != 3 || strings.Count(page, "checked") != 1 || !strings.Contains(page, "Storms &amp; floods") ||
		strings.Contains(page, "event.level") || !strings.Contains(page, "The Daily") || strings.Contains(page, "ada@") {
		t.Fatalf("the page is %s", page)
	}
	two := on(t, page, `value="(sub-[0-9a-z]+)"> <span>Storms`)
	people.must(200, "POST", link, form, "page=1&s="+two+"&why=often")
	if got := states(s.http, "one", "two", "third"); strings.Count(got, "ended") != 1 || !strings.HasPrefix(got, "active") {
		t.Fatalf("after one: %s", got)
	}
	left := people.must(200, "POST", link, form, "page=1&all=1")
	if got := states(s.http, "one", "two", "third", "theirs"); got != "ended ended ended active " {
		t.Fatalf("after all: %s", got)
	}
	back := on(t, left, `action="\.\.(/r/[^"]+)"`)
	people.must(200, "GET", back, "", "") // asks
	if got := states(s.http, "one", "two", "third"); got != "ended ended ended " {
		t.Fatalf("after a look: %s", got)
	}
	for range 2 {
		if done := people.must(200, "POST", back, form, ""); !strings.Contains(done, "You are subscribed again") {
			t.Fatalf("the page is %s", done)
		}
		if got := states(s.http, "one", "two", "third"); strings.Count(got, "active") != 2 || !strings.HasPrefix(got, "active") {
			t.Fatalf("after the undo: %s", got) // of the second request, not of the first
		}
	}
	s.http.completed(s.http.publish(`{"title":"second"}`))
	if got := len(r.of("ada@example.org")); got != 2 {
		t.Errorf("%d mails, want 2", got)
	}
}

// A link does not restore an erased person.
func TestAnErasedPersonIsNotBroughtBack(t *testing.T) {
	t.Parallel()
	s, r := newsroom(t, sink.Config{}, "")
	s.subscribe("ada@example.org")
	s.http.completed(s.http.publish(`{"title":"first"}`))
	link, people := linkOf(t, r.one("ada@example.org"), "u"), s.http.with("")
	back := on(t, people.must(200, "POST", link, "", ""), `action="\.\.(/r/[^"]+)"`)
	found := into[struct{ Subscribers []struct{ ID string } }](t, s.http.must(200, "GET", "/v1/subscribers?address=ada@example.org", "", ""))
	s.http.must(200, "POST", "/v1/subscribers/"+found.Subscribers[0].ID+"/erase", plain, `{"suppress":true}`)
	if page := people.must(200, "POST", back, form, ""); !strings.Contains(page, "too late to undo") {
		t.Errorf("the page is %s", page)
	}
	for _, method := range []string{"GET", "POST"} {
		if page := people.must(200, method, link, "", ""); !strings.Contains(page, "You do not get any of these messages") {
			t.Errorf("the page is %s", page)
		}
	}
}
