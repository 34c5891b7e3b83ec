package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"fanfare.dev/fanfare/internal/sink"
)

// A key that nobody knows opens nothing; a key of one service opens nothing of
// another one, and does not even learn what is there.
func TestKeysReachOnlyWhatIsTheirs(t *testing.T) {
	t.Parallel()
	s, r := newsroom(t, sink.Config{}, "", "--trusted-proxies", "127.0.0.0/8") // so that wrong keys come from many addresses
	s.subscribe("reader@example.org")
	event := s.http.publish(`{"title":"secret title"}`)
	s.http.completed(event)
	s.http.must(201, "PUT", "/v1/subscriptions/mine", plain, `{"topic":"story","channel":"email","to":"reader@example.org"}`)
	other := *s.http
	other.service = "games"
	other.must(200, "POST", "/v1/apply", yaml, strings.Replace(news(r.addr, ""), "service: news", "service: games", 1))
	foreign := s.http.with(strings.TrimSpace(s.mustRun("", "key", "create", "--service", "games", "--name", "test")))

	story := `{"title":"forged"}`
	routes := []struct {
		method, path, contentType, body string
		statuses                        []int // for the foreign key
	}{
		{"POST", "/v1/apply", yaml, news(r.addr, "rate: 1/h"), []int{403}},
		{"POST", "/v1/apply?service=news", yaml, news(r.addr, "rate: 1/h"), []int{403}},
		{"POST", "/v1/topics/story/events?service=news", plain, story, []int{403}},
		{"POST", "/v1/topics/story/events?service=news", lines, story + "\n", []int{403}},
		{"POST", "/v1/events?service=news", cloudevent, `{"specversion":"1.0","id":"9","source":"/a","type":"story","data":` + story + `}`, []int{403}},
		{"POST", "/v1/subscriptions?service=news", plain, `{"topic":"story","channel":"email","to":"spy@example.org"}`, []int{403}},
		{"POST", "/v1/subscriptions?service=news", lines, `{"topic":"story","channel":"email","to":"spy@example.org"}`, []int{403}},
		{"PUT", "/v1/subscriptions/mine?service=news", plain, `{"topic":"story","channel":"email","to":"spy@example.org"}`, []int{403}},
		{"GET", "/v1/subscriptions/mine", "", "", []int{404}},
		{"GET", "/v1/subscriptions/mine?service=news", "", "", []int{403}},
		{"DELETE", "/v1/subscriptions/mine", "", "", []int{404}},
		{"DELETE", "/v1/subscriptions/mine?service=news", "", "", []int{403}},
		{"GET", "/v1/subscribers/reader@example.org/deliveries", "", "", []int{404}},
		{"GET", "/v1/events/" + event, "", "", []int{404}},
		{"GET", "/v1/events/" + event + "/deliveries", "", "", []int{404}},
		{"GET", "/v1/broadcasts?service=news", "", "", []int{403}},
		{"GET", "/v1/status?service=news", "", "", []int{403}},
		{"POST", "/v1/pause", plain, `{"scope":{"kind":"all"}}`, []int{403}},
		{"POST", "/v1/pause", plain, `{"scope":{"kind":"service","name":"news"}}`, []int{403}},
		{"POST", "/v1/pause", plain, `{"scope":{"kind":"channel","name":"news/email"}}`, []int{403}},
		{"POST", "/v1/cancel", plain, `{"scope":{"kind":"broadcast","name":"` + event + `"}}`, []int{404}},
		{"POST", "/v1/resume", plain, `{"scope":{"kind":"broadcast","name":"` + event + `"}}`, []int{404}},
		{"POST", "/v1/keys", plain, `{"service":"news","name":"stolen"}`, []int{403}},
		{"POST", "/v1/keys", plain, `{"all_services":true,"name":"stolen"}`, []int{403}},
		{"GET", "/v1/keys/key-1", "", "", []int{404}},
		{"PATCH", "/v1/keys/key-1", plain, `{"disabled":true}`, []int{404}},
		{"POST", "/v1/keys/key-1/rotate", "", "", []int{404}},
		{"DELETE", "/v1/keys/key-1", "", "", []int{404}},
		{"GET", "/v1/parked", "", "", []int{200}}, // which is empty,
		{"POST", "/v1/parked/prk-20261120-1/retry", "", "", []int{404}},
		{"DELETE", "/v1/parked/prk-20261120-1", "", "", []int{404}},
		{"POST", "/v1/tasks?service=news", plain, `{"action":"end-subscriptions"}`, []int{403}},
		{"GET", "/v1/settings", "", "", []int{403}},
		{"GET", "/v1/tasks", "", "", []int{200}}, // which is empty,
		{"GET", "/v1/tasks/tsk-1", "", "", []int{404}},
	}
	for i, route := range routes {
		t.Run(route.method+" "+strings.ReplaceAll(route.path, event, "evt")+" "+route.contentType, func(t *testing.T) {
			for _, key := range []string{"", "wrong", s.key + "x", strings.ToUpper(s.key)} {
				nobody := *s.http.with(key)
				nobody.t = t
				if got := nobody.refused(401, route.method, route.path, route.contentType, route.body, "X-Forwarded-For", fmt.Sprint("192.0.2.", i)); got.Code != "unauthenticated" || got.Hint == "" {
					t.Errorf("with key %q: %+v", key, got)
				}
			}
			status, text, _ := foreign.send(route.method, route.path, route.contentType, route.body)
			if !slices.Contains(route.statuses, status) {
				t.Errorf("the key of another service got %d, want %v: %s", status, route.statuses, text)
			}
			if strings.Contains(text, "secret title") || strings.Contains(text, "reader@") && !strings.Contains(route.path, "reader@") {
				t.Errorf("the key of another service learnt %s", text)
			}
		})
	}
	for path, hidden := range map[string]string{"/v1/status": "news", "/v1/broadcasts": event} {
		if text := foreign.must(200, "GET", path, "", ""); strings.Contains(text, hidden) {
			t.Errorf("%s shows another service: %s", path, text)
		}
	}
	// Nothing of it has worked.
	s.http.completed(s.http.publish(`{"title":"second"}`))
	if got := len(r.of("reader@example.org")); got != 2 || r.total() != 2 {
		t.Errorf("%d mails for the reader, %d in all, want 2", got, r.total())
	}
	if ran := run(t, []string{"FANFARE_SERVER=" + s.url, "FANFARE_KEY=wrong"}, "", "status"); ran.code != 4 || !strings.Contains(ran.err, "key") {
		t.Errorf("the command line with a wrong key ended with %d: %s", ran.code, ran.err)
	}
}
