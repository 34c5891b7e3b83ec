package main

import (
	"strings"
	"testing"
)

const sentMessage = `201 {"id":"msg-1","event":"evt-1","state":"accepted","recipients":1,"counts":{"accepted":1},"stages":{"received":"2026-11-20T08:00:00Z","completed":"2026-11-20T08:00:01Z"},
	"delivery":{"address":"a@b.c","attempts":[{"attempt":1,"state":"accepted","code":250,"text":"queued"}]}}`

func TestSend(t *testing.T) {
	for name, test := range map[string]struct {
		args   []string
		files  map[string]string
		stdin  string
		answer string
		code   int
		asked  string // the request, without its Idempotency-Key
		out    []string
		errs   []string
	}{
		"to one": {args: []string{"send", "--to", "a@b.c", "--channel", "email", "--template", "receipt", "--data", `{"order":1}`, "--reference", "r", "--wait"}, answer: sentMessage,
			asked: `POST /v1/messages?wait=30s {"channel":"email","to":"a@b.c","template":"receipt","data":{"order":1},"reference":"r"}`, out: []string{"msg-1 accepted\n", "a@b.c: 250 queued"}},
		"as JSON": {args: []string{"send", "--to", "a@b.c", "--channel", "email", "--template", "receipt", "--json", "--wait=5s"}, answer: sentMessage,
			asked: `POST /v1/messages?wait=5s {"channel":"email","to":"a@b.c","template":"receipt"}`, out: []string{`"id": "msg-1"`, `"code": 250`}},
		"with content from files": {args: []string{"send", "--subscriber", "ada", "--channel", "email", "--subject", "S", "--text", "T", "--html", "<p>", "--data", "d.json", "--lane", "bulk"},
			files: map[string]string{"d.json": `{"a":1}`}, answer: sentMessage,
			asked: `POST /v1/messages {"channel":"email","subscriber":"ada","content":{"subject":"S","text":"T","html":"\u003cp\u003e"},"data":{"a":1},"lane":"bulk"}`},
		"to the rows of a table": {args: []string{"send", "--recipients", "p.csv", "--channel", "email", "--template", "t"}, files: map[string]string{"p.csv": "\xef\xbb\xbfto, name,seat\na@b.c,Ada,7\nd@e.f,,\n"},
			answer: `201 {"id":"msg-1","state":"queued","recipients":1,"counts":{"pending":1},"errors":[{"index":1,"error":{"code":"invalid","detail":"undefined variable sub.name","pointer":"/recipients/1/data"}}]}`, code: 2,
			asked: `POST /v1/messages {"channel":"email","recipients":[{"to":"a@b.c","data":{"name":"Ada","seat":7}},{"to":"d@e.f","data":{}}],"template":"t"}`,
			out:   []string{"msg-1 queued, 1 recipients: 1 pending"}, errs: []string{"recipient 1: /recipients/1/data: undefined variable sub.name", "1 recipient was rejected"}},
		"to lines": {args: []string{"send", "--recipients", "-", "--channel", "email", "--template", "t", "--all-or-nothing"}, stdin: `{"to":"a@b.c"}` + "\n\n" + `{"subscriber":"ada","data":{"x":1}}` + "\n", answer: sentMessage,
			asked: `POST /v1/messages {"channel":"email","recipients":[{"to":"a@b.c"},{"subscriber":"ada","data":{"x":1}}],"template":"t","all_or_nothing":true}`},
		"a refusal": {args: []string{"send", "--to", "a@b.c", "--channel", "email", "--template", "receit"}, code: 1,
			answer: `422 {"code":"invalid","detail":"unknown template \"receit\"","pointer":"/template","hint":"did you mean receipt?","status":422}`, errs: []string{"/template: unknown template", "did you mean receipt?"}},
		"what did not arrive": {args: []string{"send", "--to", "a@b.c", "--channel", "email", "--template", "t", "--wait"}, code: 2,
			answer: strings.NewReplacer(`"accepted":1`, `"failed":1`, `"state":"accepted"`, `"state":"failed"`, "250", "550").Replace(sentMessage), out: []string{"msg-1 failed", "550"}, errs: []string{"1 message was not delivered"}},
		"what is not settled": {args: []string{"send", "--to", "a@b.c", "--channel", "email", "--template", "t", "--wait=1s"}, code: 2,
			answer: `201 {"id":"msg-1","state":"pending","recipients":1,"counts":{"pending":1}}`, out: []string{"msg-1 pending"}, errs: []string{"fanfare trace msg-1"}},
		"broken data":       {args: []string{"send", "--to", "a@b.c", "--channel", "email", "--template", "t", "--data", "{"}, code: 1, errs: []string{"/data: is not valid JSON"}},
		"a bad line":        {args: []string{"send", "--recipients", "-", "--channel", "email", "--template", "t"}, stdin: `{"to":"a@b.c"}` + "\n" + `{"too":1}`, code: 1, errs: []string{"line 2", `unknown field "too"`}},
		"a nameless column": {args: []string{"send", "--recipients", "p.csv", "--channel", "email", "--template", "t"}, files: map[string]string{"p.csv": "email\na@b.c\n"}, code: 1, errs: []string{"line 1", "neither a column to nor a column subscriber"}},
		"an empty table":    {args: []string{"send", "--recipients", "p.csv", "--channel", "email", "--template", "t"}, files: map[string]string{"p.csv": ""}, code: 1, errs: []string{"the file is empty", "for example to,name"}},
		"to nobody":         {args: []string{"send", "--channel", "email", "--template", "t"}, code: 1, errs: []string{"to", "recipients"}},
		"nothing":           {args: []string{"send", "--to", "a@b.c", "--channel", "email"}, code: 1, errs: []string{"template", "subject"}},
	} {
		t.Run(name, func(t *testing.T) {
			f := &fake{answers: map[string]string{}}
			if test.answer != "" {
				f.answers["POST /v1/messages"] = test.answer
			}
			code, out, errs := run(t, f, test.files, test.stdin, test.args...)
			if code != test.code {
				t.Errorf("ended with %d, want %d: %s%s", code, test.code, out, errs)
			}
			if test.asked != "" && (len(f.asked) != 1 || f.asked[0] != test.asked) {
				t.Errorf("asked %q, want %q", f.asked, test.asked)
			}
			for _, want := range test.out {
				if !strings.Contains(out, want) {
					t.Errorf("printed %q, want %q", out, want)
				}
			}
			for _, want := range test.errs {
				if !strings.Contains(errs, want) {
					t.Errorf("said %q, want %q", errs, want)
				}
			}
		})
	}
}
