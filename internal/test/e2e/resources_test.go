package e2e

import (
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"

	"fanfare.dev/fanfare/internal/sink"
)

// byWhom is when a version of a template was made, and by which key.
var byWhom = regexp.MustCompile(`"at":"[^"]*","key":"[^"]*","key_name":"[^"]*",`)

// Services, channels, templates, topics and rules are made one by one, without a
// document, and then do their work; what GET shows can be put as it is.
func TestConfigurationIsMadeResourceByResource(t *testing.T) {
	t.Parallel()
	s := prepare(t)
	s.env = []string{"SECRET=x"}
	s.start()
	r := newRelay(t, sink.Config{})
	c := s.http
	put := func(status int, path, body string) string {
		t.Helper()
		return c.must(status, "PUT", path, plain, body)
	}
	put(201, "/v1/services/news", `{"title":"The news"}`)
	put(200, "/v1/services/news", `{"title":"All the news"}`)
	put(201, "/v1/channels/email", `{"driver":"smtp","relay":"`+r.addr+`","from":"News <news@example.org>","tls":"off","username":"u","password_env":"SECRET","rate":"unlimited"}`)
	put(201, "/v1/templates/story", `{"subject":"{{ event.title }}","text":"one"}`)
	put(201, "/v1/topics/story", `{"title":"Stories","schema":{"type":"object","properties":{"title":{"type":"string"},"level":{"type":"number"}}},"template":"story"}`)
	put(201, "/v1/topics/story/rules/high", `{"when":"event.level >= sub.level","params":{"level":"number"}}`)
	put(201, "/v1/topics/story/rules/any", `{"when":"true"}`)
	put(200, "/v1/topics/story/rules/high", `{"when":"event.level > sub.level","params":{"level":"number"}}`)
	put(200, "/v1/templates/story", `{"subject":"{{ event.title }}","text":"two"}`)

	for path, want := range map[string]string{
		"/v1/services":                   `{"services":[{"name":"news","title":"All the news","matching_budget":"1ms"}]}`,
		"/v1/services/news":              `{"name":"news","title":"All the news","matching_budget":"1ms"}`,
		"/v1/topics/story/rules":         `{"rules":[{"name":"high","when":"event.level > sub.level","params":{"level":"number"}},{"name":"any","when":"true"}]}`,
		"/v1/topics/story/rules/any":     `{"name":"any","when":"true"}`,
		"/v1/templates/story":            `{"name":"story","version":2,"state":"published","subject":"{{ event.title }}","text":"two"}`,
		"/v1/templates/story/versions/1": `{"name":"story","version":1,"state":"earlier","subject":"{{ event.title }}","text":"one"}`,
		"/v1/templates/story/versions":   `{"templates":[{"name":"story","version":1,"state":"earlier","subject":"{{ event.title }}","text":"one"},{"name":"story","version":2,"state":"published","subject":"{{ event.title }}","text":"two"}]}`,
		"/v1/channels/email":             `"password_env":"SECRET"`,
		"/v1/topics?limit=1":             `"name":"story"`,
		"/v1/topics/story/rules?limit=1": `"next":"`,
		"/v1/channels":                   `"relay":"` + r.addr + `"`,
		"/v1/templates":                  `"version":2`,
	} {
		if got := byWhom.ReplaceAllString(c.must(200, "GET", path, "", ""), ""); !strings.Contains(strings.TrimSpace(got), want) {
			t.Errorf("%s: %s", path, got)
		}
	}
	// A PUT of the answer to a GET changes nothing.
	for _, path := range []string{"/v1/services/news", "/v1/topics/story", "/v1/topics/story/rules/high", "/v1/templates/story", "/v1/channels/email"} {
		_, before, h := c.send("GET", path, "", "")
		status, after, again := c.send("PUT", path, plain, before)
		if status != 200 || before != after || h.Get("ETag") == "" || h.Get("ETag") != again.Get("ETag") {
			t.Errorf("%s: %d\n%s%s\n%s%s", path, status, h.Get("ETag"), before, again.Get("ETag"), after)
		}
	}
	// The topic's list sets the order; what it does not list goes; without a list the rules stay.
	put(200, "/v1/topics/story", `{"template":"story","rules":[{"name":"any","when":"true"},{"name":"high","when":"event.level > sub.level","params":{"level":"number"}}],"schema":{"type":"object","properties":{"title":{"type":"string"},"level":{"type":"number"}}}}`)
	if got := c.must(200, "GET", "/v1/topics/story", "", ""); strings.Index(got, `"any"`) > strings.Index(got, `"high"`) || strings.Contains(got, "Stories") {
		t.Errorf("the order is %s", got)
	}
	put(200, "/v1/topics/story", `{"template":"story","title":"Stories"}`)
	if got := c.must(200, "GET", "/v1/topics/story/rules", "", ""); strings.Count(got, `"name"`) != 2 {
		t.Errorf("the rules are %s", got)
	}

	c.must(204, "DELETE", "/v1/channels/email", "", "") // nobody uses it
	put(201, "/v1/channels/email", `{"driver":"smtp","relay":"`+r.addr+`","from":"News <news@example.org>","tls":"off","rate":"unlimited"}`)
	sub := c.subscribe(`{"topic":"story","channel":"email","to":"reader@example.org","rule":"any"}`)
	c.completed(c.publish(`{"title":"hello"}`))
	if got := len(r.of("reader@example.org")); got != 1 {
		t.Errorf("%d mails", got)
	}
	// A resource in use cannot be deleted.
	for path, says := range map[string]string{
		"/v1/topics/story": "active or paused subscription", "/v1/topics/story/rules/any": "removes", "/v1/channels/email": "active or paused subscription",
		"/v1/services/news": "active or paused subscription", "/v1/templates/story": "story",
	} {
		if got := c.refused(409, "DELETE", path, "", ""); !strings.Contains(got.Detail, says) {
			t.Errorf("%s: %+v", path, got)
		}
	}
	key := strings.TrimSpace(s.mustRun("", "key", "create", "--service", "news"))
	c.must(204, "DELETE", "/v1/subscriptions/"+sub, "", "")
	for range 2 {
		c.must(204, "DELETE", "/v1/topics/story/rules/any", "", "")
	}
	c.must(204, "DELETE", "/v1/services/news", "", "")
	c.with(key).must(401, "GET", "/v1/status", "", "")
	s.mustStop()
	s.start()
	c = s.http
	c.with(key).must(401, "GET", "/v1/status", "", "")
	if got := c.must(200, "GET", "/v1/services", "", ""); strings.Contains(got, "news") {
		t.Error(got)
	}
	// Under its old name the service begins anew.
	put(201, "/v1/services/news", `{}`)
	if got := c.must(200, "GET", "/v1/topics", "", ""); strings.Contains(got, "story") {
		t.Error(got)
	}
	put(201, "/v1/templates/story", `{"subject":"s","text":"three"}`)
	if got := c.must(200, "GET", "/v1/templates/story", "", ""); !strings.Contains(got, `"version":3`) {
		t.Errorf("a version was given twice: %s", got)
	}
}

func TestAChangeOfWhatWasChangedMeanwhileIsRefused(t *testing.T) {
	t.Parallel()
	s, _ := newsroom(t, sink.Config{}, "")
	c := s.http
	for path, bodies := range map[string][2]string{
		"/v1/services/news":          {`{"title":"a"}`, `{"title":"b"}`},
		"/v1/topics/new":             {`{"title":"a"}`, `{"title":"b"}`},
		"/v1/topics/story/rules/new": {`{"when":"true"}`, `{"when":"1 < 2"}`},
		"/v1/templates/new":          {`{"subject":"a","text":"a"}`, `{"subject":"b","text":"b"}`},
		"/v1/channels/new":           {`{"driver":"file","path":"/tmp/a","from":"a@example.org"}`, `{"driver":"file","path":"/tmp/b","from":"a@example.org"}`},
	} {
		if path != "/v1/services/news" {
			c.refused(404, "GET", path, "", "")
			c.refused(412, "PUT", path, plain, bodies[0], "If-Match", "*")
			c.refused(412, "DELETE", path, "", "", "If-Match", `"x"`)
			c.must(201, "PUT", path, plain, bodies[0], "If-None-Match", "*")
		}
		c.must(200, "PUT", path, plain, bodies[0])
		_, _, h := c.send("GET", path, "", "")
		tag := h.Get("ETag")
		if status, text, _ := c.send("GET", path, "", "", "If-None-Match", tag); status != http.StatusNotModified || text != "" {
			t.Errorf("%s: %d %s", path, status, text)
		}
		if got := c.refused(412, "PUT", path, plain, bodies[1], "If-None-Match", "*"); got.Code != "precondition_failed" {
			t.Errorf("%s: %+v", path, got)
		}
		// Of ten who change the same state, one succeeds.
		var wg sync.WaitGroup
		statuses := make([]int, 10)
		for i := range statuses {
			wg.Go(func() { statuses[i], _, _ = c.send("PUT", path, plain, bodies[1], "If-Match", tag) })
		}
		wg.Wait()
		count := map[int]int{}
		for _, status := range statuses {
			count[status]++
		}
		if count[200] != 1 || count[412] != 9 {
			t.Errorf("%s: %v", path, count)
		}
		c.refused(412, "DELETE", path, "", "", "If-Match", tag)
		if path != "/v1/services/news" {
			_, _, h = c.send("GET", path, "", "")
			c.must(204, "DELETE", path, "", "", "If-Match", h.Get("ETag"))
		}
	}
}

// Mistakes in what is put are named by their place in it, with line and column.
func TestMistakesInAResourceAreNamedInIt(t *testing.T) {
	t.Parallel()
	s, _ := newsroom(t, sink.Config{}, "")
	s.http.subscribe(`{"topic":"story","channel":"email","to":"reader@example.org","filter":"event.level > 3.0"}`)
	for _, test := range []struct {
		name, path, contentType, body string
		status, line, column          int
		pointer, says                 string
	}{
		{"unknown field", "/v1/topics/story", plain, "{\n \"titel\": \"x\"}", 422, 2, 2, "/titel", "unknown field"},
		{"wrong type", "/v1/channels/email", plain, "{\"driver\":\"smtp\",\n\"connections\": \"many\"}", 422, 2, 0, "/connections", "whole number"},
		{"syntax", "/v1/topics/story", plain, `{"title":`, 422, 1, 0, "", ""},
		{"another name", "/v1/topics/story", plain, `{"name":"other"}`, 422, 1, 0, "/name", "path"},
		{"a name that is none", "/v1/topics/St%20ory", plain, `{}`, 422, 0, 0, "", "not a valid name"},
		{"delete in a body", "/v1/topics/story", plain, `{"delete":true}`, 422, 1, 0, "/delete", "unknown field"},
		{"bad rule", "/v1/topics/story/rules/r", plain, "{\n\"when\": \"event.\"}", 422, 1, 7, "/when", ""},
		{"bad rule in YAML", "/v1/topics/story/rules/r", yaml, "when: true\ntemplate: none\n", 422, 2, 0, "/template", "unknown template"},
		{"rule of no topic", "/v1/topics/none/rules/r", plain, `{"when":"true"}`, 404, 0, 0, "", "no topic"},
		{"bad template", "/v1/templates/story", plain, `{"subject":"{{ event.title","text":"x"}`, 422, 0, 0, "/subject", ""},
		{"schema in use", "/v1/topics/story", plain, `{"template":"story","schema":{"type":"object","additionalProperties":false,"properties":{"title":{"type":"string"},"place":{"type":"string"},"level":{"type":"string"}}},"rules":[]}`, 409, 1, 0, "/schema", "filter"},
		{"password", "/v1/channels/email", plain, `{"driver":"smtp","password":"hunter2"}`, 422, 1, 0, "/password", "unknown field"},
		{"unknown type", "/v1/topics/story", "text/plain", "x", 422, 0, 0, "", "text/plain"},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := s.http.refused(test.status, "PUT", test.path, test.contentType, test.body)
			if got.Pointer != test.pointer || got.Line < test.line || test.column != 0 && got.Column != test.column || !strings.Contains(got.Detail+got.Hint, test.says) {
				t.Errorf("%+v", got)
			}
		})
	}
	// A dry run finds what apply would find, also in the filters that are in use.
	document := "service: news\ntopics:\n  story:\n    template: story\n    schema: {type: object, additionalProperties: false, properties: {title: {type: string}, place: {type: string}}}\n    rules: [{name: level, delete: true}]\n"
	for _, path := range []string{"/v1/apply?dry_run=true", "/v1/apply"} {
		if got := s.http.refused(409, "POST", path, yaml, document); got.Line != 5 || got.Column == 0 || got.Pointer != "/topics/story/schema" {
			t.Errorf("%s: %+v", path, got)
		}
	}
}

func TestAServiceSeesAndChangesNothingOfAnother(t *testing.T) {
	t.Parallel()
	s, r := newsroom(t, sink.Config{}, "")
	other := *s.http
	other.service = "games"
	other.must(200, "POST", "/v1/apply", yaml, strings.Replace(news(r.addr, ""), "service: news", "service: games", 1))
	other.must(201, "PUT", "/v1/topics/chess", plain, `{}`)
	news := s.http.with(strings.TrimSpace(s.mustRun("", "key", "create", "--service", "news")))
	news.must(404, "GET", "/v1/services/games", "", "")
	news.must(404, "GET", "/v1/topics/chess", "", "")
	news.must(403, "GET", "/v1/topics/chess?service=games", "", "")
	news.must(403, "DELETE", "/v1/services/news", "", "")
	news.must(403, "PUT", "/v1/services/mine", plain, `{}`)
	news.must(204, "DELETE", "/v1/topics/chess", "", "") // there is none in news
	for _, path := range []string{"/v1/services", "/v1/topics", "/v1/channels", "/v1/templates"} {
		if got := news.must(200, "GET", path, "", ""); strings.Contains(got, "chess") || strings.Contains(got, "games") {
			t.Errorf("%s: %s", path, got)
		}
	}
	other.must(200, "GET", "/v1/topics/chess", "", "")
	nowhere := *s.http
	nowhere.service = "nowhere"
	nowhere.must(404, "PUT", "/v1/topics/x", plain, `{}`)
	reader := s.http.with(strings.TrimSpace(s.mustRun("", "key", "create", "--service", "news", "--scope", "read")))
	reader.must(200, "GET", "/v1/topics/story", "", "")
	reader.must(403, "PUT", "/v1/topics/story", plain, `{}`)
}

// The command sends a document with its files inlined, and names a mistake at
// the line of the file that was written.
func TestTheCommandNamesTheLineOfTheFile(t *testing.T) {
	t.Parallel()
	s, _ := newsroom(t, sink.Config{}, "")
	s.http.subscribe(`{"topic":"story","channel":"email","to":"reader@example.org","filter":"event.level > 3.0"}`)
	for name, test := range map[string]struct {
		document string
		says     []string
	}{
		"unknown template": {"service: news\ntopics:\n  # a comment\n  story:\n    template: none\n", []string{"line 5", "unknown template", "/topics/story/template"}},
		"filter in use": {"service: news\ntopics:\n  story:\n    title: |\n      two\n      lines\n    schema: {type: object, additionalProperties: false, properties: {title: {type: string}, place: {type: string}}}\n" +
			"    rules: [{name: level, delete: true}]\n", []string{"line 7", "filter", "/topics/story/schema"}},
		"in a template": {"service: news\ntemplates:\n  story:\n    subject: s\n    text: |\n      one\n      {{ event.title\n", []string{"/templates/story/text"}},
	} {
		t.Run(name, func(t *testing.T) {
			for _, flag := range []string{"--dry-run=true", "--dry-run=false"} {
				ran := s.run(test.document, "apply", "-f", "-", flag)
				if ran.code != 1 {
					t.Errorf("%s ended with %d", flag, ran.code)
				}
				for _, says := range test.says {
					if !strings.Contains(ran.err, says) {
						t.Errorf("%s: %q is not in %s", flag, says, ran.err)
					}
				}
			}
		})
	}
}
