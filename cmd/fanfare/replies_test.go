package main

import (
	"strings"
	"testing"
)

func TestRepliesSayWhichRuleReadsAnAnswer(t *testing.T) {
	own := "rules:\n  - {name: mine, codes: [550], to: [example.org], then: retry, class: full, suspend: 1h}\n"
	for name, c := range map[string]struct {
		args []string
		code int
		out  []string
	}{
		"built-in":         {[]string{"replies", "test", "452 4.2.2 The mailbox is over quota"}, 0, []string{"mailbox-full (built-in)", "full", "temporary"}},
		"a wait":           {[]string{"replies", "test", "450 4.7.1 greylisted for 90 seconds"}, 0, []string{"greylisted", "not before  1m30s"}},
		"of a webhook":     {[]string{"replies", "test", "429", "--driver", "webhook"}, 0, []string{"throttled", "temporary", "slowed down"}},
		"taken":            {[]string{"replies", "test", "250 2.0.0 ok"}, 0, []string{"none matches", "taken"}},
		"own":              {[]string{"replies", "test", "550 5.1.1 no", "--destination", "Example.org", "--rules", "r.yaml"}, 0, []string{"mine (file)", "full", "temporary", "1h0m0s"}},
		"own, elsewhere":   {[]string{"replies", "test", "550 5.1.1 no", "--destination", "example.net", "--rules", "r.yaml"}, 0, []string{"bad-recipient", "permanent"}},
		"as JSON":          {[]string{"replies", "test", "550 5.1.1 no", "--json"}, 0, []string{`"class": "invalid"`, `"verdict": "permanent"`}},
		"the list":         {[]string{"replies", "list", "--rules", "r.yaml"}, 0, []string{"mine", "550", "says", "throttled, slow down"}},
		"the list as JSON": {[]string{"replies", "list", "--json"}, 0, []string{`"from": "built-in"`}},
		"no answer":        {[]string{"replies", "test", "hello"}, 1, nil},
		"wrong rules":      {[]string{"replies", "list", "--rules", "wrong.yaml"}, 1, nil},
	} {
		t.Run(name, func(t *testing.T) {
			code, out, errs := run(t, &fake{}, map[string]string{"r.yaml": own, "wrong.yaml": "rules: [{name: a, class: nonsense}]"}, "", c.args...)
			if code != c.code {
				t.Errorf("exit code %d, want %d: %s", code, c.code, errs)
			}
			for _, part := range c.out {
				if !strings.Contains(out, part) {
					t.Errorf("%q is not in\n%s", part, out)
				}
			}
		})
	}
}
