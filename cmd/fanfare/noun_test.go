package main

import (
	"slices"
	"strings"
	"testing"
)

func TestNounsAreListedShownChangedAndDeleted(t *testing.T) {
	topics := `{"topics":[{"name":"quakes","title":"Earthquakes","lane":"normal","rules":[{"name":"near","when":"x"},{"name":"all"}]}],"next":"c2"}`
	for name, test := range map[string]struct {
		args    []string
		files   map[string]string
		stdin   string
		answers map[string]string
		code    int
		asked   []string
		out     []string
		errs    []string
	}{
		"list": {args: []string{"topic", "list", "--limit", "1"}, answers: map[string]string{"GET /v1/topics": topics},
			asked: []string{"GET /v1/topics?limit=1"}, out: []string{"NAME    TITLE        LANE    TEMPLATE  RULES\nquakes  Earthquakes  normal            near, all\nmore: --cursor c2\n"}},
		"list as JSON":  {args: []string{"topic", "list", "--limit", "1", "--json"}, answers: map[string]string{"GET /v1/topics": topics}, out: []string{`"next": "c2"`, `"name": "quakes"`}},
		"empty list":    {args: []string{"channel", "list"}, answers: map[string]string{"GET /v1/channels": `{"channels":[]}`}, out: []string{"no channels\n"}},
		"empty as JSON": {args: []string{"channel", "list", "--json"}, answers: map[string]string{"GET /v1/channels": `{"channels":[]}`}, out: []string{`"channels": []`}},
		"list of a topic": {args: []string{"rule", "list", "qu/akes"}, answers: map[string]string{"GET /v1/topics/qu/akes/rules": `{"rules":[{"name":"near","params":{"min":"number"}}]}`},
			asked: []string{"GET /v1/topics/qu%2Fakes/rules?limit=100"}, out: []string{`{"min":"number"}`}},
		"filtered": {args: []string{"subscription", "list", "--topic", "quakes", "--state", "ended"}, answers: map[string]string{"GET /v1/subscriptions": `{"subscriptions":[]}`},
			asked: []string{"GET /v1/subscriptions?limit=100&state=ended&topic=quakes"}},
		"addresses": {args: []string{"subscriber", "list"}, answers: map[string]string{"GET /v1/subscribers": `{"subscribers":[{"id":"ada","addresses":[{"kind":"mail","address":"ada@example.com"},{"address":"b@c.d"}]}]}`},
			out: []string{"ada  ada@example.com, b@c.d"}},
		"get": {args: []string{"template", "get", "a/b"}, answers: map[string]string{"GET /v1/templates/a/b": `{"name":"a/b"}`}, asked: []string{"GET /v1/templates/a%2Fb"}, out: []string{`"name": "a/b"`}},
		"put of YAML": {args: []string{"channel", "put", "mail", "f.yaml"}, files: map[string]string{"f.yaml": "driver: smtp\nrelay: 127.0.0.1:25\n"},
			answers: map[string]string{"PUT /v1/channels/mail": `201 {"name":"mail"}`}, asked: []string{`PUT /v1/channels/mail {"driver":"smtp","relay":"127.0.0.1:25"}`}, out: []string{"channel mail created\n"}},
		"put of JSON": {args: []string{"rule", "put", "quakes", "near", "-"}, stdin: `{"when":"true"}`,
			answers: map[string]string{"PUT /v1/topics/quakes/rules/near": `{"name":"near"}`}, asked: []string{`PUT /v1/topics/quakes/rules/near {"when":"true"}`}, out: []string{"rule near changed\n"}},
		"put of what is neither": {args: []string{"channel", "put", "mail", "f.yaml"}, files: map[string]string{"f.yaml": "driver: [\n"}, code: 1, errs: []string{"f.yaml"}},
		"put that is refused": {args: []string{"service", "put", "news", "f.json"}, files: map[string]string{"f.json": `{"titel":"x"}`},
			answers: map[string]string{"PUT /v1/services/news": `422 {"code":"invalid","detail":"unknown field","pointer":"/titel"}`}, code: 1, errs: []string{"f.json: /titel: unknown field", "/titel"}},
		"delete":           {args: []string{"subscriber", "delete", "a", "b"}, answers: map[string]string{"DELETE /v1/subscribers/a": "204 ", "DELETE /v1/subscribers/b": "204 "}, asked: []string{"DELETE /v1/subscribers/a", "DELETE /v1/subscribers/b"}},
		"delete of nobody": {args: []string{"subscriber", "delete"}, code: 1, errs: []string{"an argument is missing"}},
		"get of nothing":   {args: []string{"topic", "get", "none"}, code: 1, errs: []string{"no such thing"}},
	} {
		t.Run(name, func(t *testing.T) {
			f := &fake{answers: test.answers}
			code, out, errs := run(t, f, test.files, test.stdin, test.args...)
			if code != test.code || test.asked != nil && !slices.Equal(f.asked, test.asked) {
				t.Errorf("ended with %d, asked %q", code, f.asked)
			}
			for _, want := range test.out {
				if !strings.Contains(out, want) {
					t.Errorf("output lacks %q:\n%s", want, out)
				}
			}
			for _, want := range test.errs {
				if !strings.Contains(errs, want) {
					t.Errorf("error output lacks %q:\n%s", want, errs)
				}
			}
		})
	}
}

func TestShellsCompleteNamesFromTheServer(t *testing.T) {
	answers := map[string]string{
		"GET /v1/topics": `{"topics":[{"name":"quakes"},{"name":"quiet"},{"name":"news"}]}`, "GET /v1/templates": `{"templates":[{"name":"quake"}]}`,
		"GET /v1/channels": `{"channels":[{"name":"mail"}]}`, "GET /v1/services": `{"services":[{"name":"demo"}]}`,
		"GET /v1/topics/quakes/rules": `{"rules":[{"name":"near"}]}`, "GET /v1/subscribers": `{"subscribers":[{"id":"ada"}]}`,
	}
	for line, want := range map[string]string{
		"publish qu":                      "quakes quiet :4",
		"preview ":                        "quake :4",
		"preview quake --channel ":        "mail :4",
		"subscription list --topic n":     "news :4",
		"subscription list --state ":      "active paused ended :4",
		"trace x --state d":               "deferred delivered :4",
		"status --service ":               "demo :4",
		"rule get ":                       "quakes quiet news :4",
		"rule get quakes ":                "near :4",
		"rule put quakes near ":           ":0",
		"subscriber delete ":              "ada :4",
		"publish quakes ":                 ":0",
		"publish quakes - --lane ":        "urgent normal bulk :4",
		"parked retry ":                   ":0",
		"explain sub-1 ":                  ":0",
		"serve --durability f":            "fsync :4",
		"import subscriptions x --topic ": "quakes quiet news :4",
	} {
		code, out, errs := run(t, &fake{answers: answers}, nil, "", append([]string{"__complete"}, strings.Split(line, " ")...)...)
		if got := strings.Join(strings.Fields(out), " "); code != 0 || got != want {
			t.Errorf("%q gives %q, not %q: %s", line, got, want, errs)
		}
	}
	// A server that does not answer, or not well, completes nothing.
	code, out, errs := run(t, &fake{}, nil, "", "__complete", "publish", "")
	if got := strings.Join(strings.Fields(out), " "); code != 0 || got != ":4" {
		t.Errorf("without names: %d %q %s", code, got, errs)
	}
}
