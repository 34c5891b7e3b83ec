package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"fanfare.dev/fanfare/internal/cli/bulkfile"

	"fanfare.dev/fanfare/client"
)

// fake is a server that notes what it was asked and answers from a table of
// "METHOD /path".
type fake struct {
	answers map[string]string // a body, or "status body"
	asked   []string          // METHOD /path?query body
	keys    []string
}

func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	f.asked = append(f.asked, strings.TrimSpace(r.Method+" "+r.URL.RequestURI()+" "+string(body)))
	f.keys = append(f.keys, r.Header.Get("Authorization")+" "+r.Header.Get("X-Fanfare-Service"))
	answer, ok := f.answers[r.Method+" "+r.URL.Path]
	if !ok {
		answer = `404 {"code":"not_found","detail":"no such thing","status":404}`
	}
	var status int
	if n, _ := fmt.Sscanf(answer, "%3d ", &status); n == 1 {
		w.WriteHeader(status)
		answer = answer[4:]
	}
	io.WriteString(w, answer)
}

// run executes one command line against f; file contents stand in a folder
// that is the working directory of nothing, so that names are replaced.
func run(t *testing.T, f *fake, files map[string]string, stdin string, args ...string) (code int, out, errs string) {
	t.Helper()
	s := httptest.NewServer(f)
	t.Cleanup(s.Close)
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		for i := range args {
			if args[i] == name {
				args[i] = filepath.Join(dir, name)
			}
		}
	}
	env := map[string]string{"FANFARE_SERVER": s.URL, "FANFARE_KEY": "secret"}
	var stdout, stderr bytes.Buffer
	c := &cli{in: strings.NewReader(stdin), out: &stdout, err: &stderr, lookupEnv: func(k string) (string, bool) { v, ok := env[k]; return v, ok }}
	code = c.run(t.Context(), args)
	return code, strings.ReplaceAll(stdout.String(), dir+"/", ""), strings.ReplaceAll(stderr.String(), dir+"/", "")
}

const broadcast = `{"event":"evt-1","service":"news","topic":"quakes","source":"/s","sourceid":"q1","lane":"urgent","state":"completed","matched":3,"messages":2,
	"deliveries":{"accepted":1,"failed":1},"stages":{"received":"2026-11-20T08:00:00Z","completed":"2026-11-20T08:00:01.5Z"}}`

func TestCommands(t *testing.T) {
	accepted := `202 {"id":"evt-1","duplicate":false}` + "\n"
	for name, test := range map[string]struct {
		args    []string
		files   map[string]string
		stdin   string
		answers map[string]string
		code    int
		asked   string // the last request
		out     []string
		errs    []string
	}{
		"apply prints the difference": {
			args: []string{"apply", "-f", "f.yaml"}, files: map[string]string{"f.yaml": "service: news\n"},
			answers: map[string]string{"POST /v1/apply": `{"changes":[{"kind":"topic","name":"q","action":"create"},{"kind":"channel","name":"m","action":"update","fields":[{"field":"rate","old":"1/s","new":"2/s"}]},{"kind":"rule","name":"q/r","action":"delete"}]}`},
			asked:   `POST /v1/apply {"service":"news"}`, out: []string{"+ topic q\n~ channel m\n    - rate: 1/s\n    + rate: 2/s\n- rule q/r\n"},
		},
		"apply without a difference": {args: []string{"apply", "-f", "-", "--dry-run"}, stdin: "service: news", answers: map[string]string{"POST /v1/apply": `{"changes":[]}`},
			asked: `POST /v1/apply?dry_run=true {"service":"news"}`, out: []string{"no changes\n"}},
		"apply of a bad file names it": {args: []string{"apply", "-f", "f.yaml"}, files: map[string]string{"f.yaml": "service: news\ntopcis: {}\n"}, code: 1, errs: []string{"line 2", "f.yaml", "topcis"}},
		"apply without a file":         {args: []string{"apply"}, code: 1, errs: []string{"--file is missing", "usage: fanfare apply -f FILE\n"}},
		"apply of a wrong file":        {args: []string{"apply", "-f", "load.yaml"}, files: map[string]string{"load.yaml": "topics:\n  x: {}\n"}, code: 1, errs: []string{"fanfare: load.yaml: line 1"}},
		"apply of a bare file":         {args: []string{"apply", "load.yaml"}, code: 1, errs: []string{`unexpected argument "load.yaml"`, "usage: fanfare apply -f FILE"}},

		"import prints bad lines": {args: []string{"import", "subscriptions", "p.ndjson"}, files: map[string]string{"p.ndjson": "{}\n{}\n"},
			answers: map[string]string{"POST /v1/subscriptions": `{"created":1,"updated":0,"failed":1,"errors":[{"line":2,"error":{"code":"invalid","detail":"is empty","pointer":"/to"}}]}`},
			code:    2, asked: "POST /v1/subscriptions?quiet=true {}\n{}", out: []string{"1 created, 0 updated, 1 failed"}, errs: []string{"line 2: /to: is empty", "1 line was rejected"}},
		"import counts what it does not print": {args: []string{"import", "subscriptions", "-", "--json"}, stdin: "{}\n",
			answers: map[string]string{"POST /v1/subscriptions": `{"created":0,"updated":0,"failed":5000,"errors":[]}`}, code: 2, out: []string{`"failed": 5000`}, errs: []string{"and 5,000 more"}},
		"import tells what its conditions cost": {args: []string{"import", "subscriptions", "-"}, stdin: "{}\n",
			answers: map[string]string{"POST /v1/subscriptions": `{"created":3,"updated":0,"failed":0,"errors":[],"unindexed":2,"ns_per_event":1500}`},
			out:     []string{"3 created"}, errs: []string{"the index does not cover the conditions of 2", "1.5µs longer", "fanfare report conditions"}},
		"put tells what a condition costs": {args: []string{"subscription", "put", "ada", "-"}, stdin: `{"topic":"quakes"}`,
			answers: map[string]string{"PUT /v1/subscriptions/ada": `{"id":"ada","created":true,"matching":{"indexed":false,"ns_per_event":40,"reason":"!= cannot be indexed"}}`},
			out:     []string{"subscription ada"}, errs: []string{"40ns", "!= cannot be indexed"}},
		"import of CSV": {args: []string{"import", "subscriptions", "p.csv", "--topic", "quakes", "--channel", "mail"},
			files:   map[string]string{"p.csv": "\xef\xbb\xbfto,params.mag,params.place,data.vip,rule,topic\na@b.c,4.5,007,true,near,\nd@e.f,,,,,other\n"},
			answers: map[string]string{"POST /v1/subscriptions": `{"created":2,"updated":0,"failed":0,"errors":[]}`},
			asked: `POST /v1/subscriptions?quiet=true {"topic":"quakes","channel":"mail","to":"a@b.c","rule":"near","params":{"mag":4.5,"place":"007"},"data":{"vip":true}}` + "\n" +
				`{"topic":"other","channel":"mail","to":"d@e.f"}`, out: []string{"2 created"}},
		"import of CSV names the line of the file": {args: []string{"import", "subscriptions", "p.csv", "--topic", "q", "--channel", "mail"}, files: map[string]string{"p.csv": "to,data.note\na@b.c,\"two\nlines\"\n\nx,y\n"},
			answers: map[string]string{"POST /v1/subscriptions": `{"created":0,"updated":0,"failed":2,"errors":[{"line":1,"error":{"code":"invalid","detail":"a"}},{"line":2,"error":{"code":"invalid","detail":"b"}}]}`},
			code:    2, errs: []string{"line 2: a\n", "line 5: b\n"}},
		"import of CSV with a wrong column": {args: []string{"import", "subscriptions", "p.csv"}, files: map[string]string{"p.csv": "email\na@b.c\n"}, code: 1, errs: []string{`unknown column "email"`, "time_zone"}},
		"import of CSV with semicolons":     {args: []string{"import", "subscriptions", "p.csv"}, files: map[string]string{"p.csv": "topic;to\nq;a@b.c\n"}, code: 1, errs: []string{`unknown column "topic;to"`, "commas between the columns"}},
		"import of CSV with a capital":      {args: []string{"import", "subscriptions", "p.csv"}, files: map[string]string{"p.csv": "Topic,to\nq,a@b.c\n"}, code: 1, errs: []string{`unknown column "Topic"`, "did you mean topic?"}},
		"import of CSV in UTF-16":           {args: []string{"import", "subscriptions", "p.csv"}, files: map[string]string{"p.csv": "\xff\xfet\x00o\x00\n\x00"}, code: 1, errs: []string{"line 1", "save the file as UTF-8"}},
		"import of CSV in Latin-1": {args: []string{"import", "subscriptions", "p.csv", "--topic", "q", "--channel", "mail"}, files: map[string]string{"p.csv": "to\ncaf\xe9@b.c\n"}, code: 2,
			answers: map[string]string{"POST /v1/subscriptions": `{}`}, errs: []string{"line 2: /to: the cell is not valid UTF-8 (save the file as UTF-8)"}},
		"import of CSV with an open quote": {args: []string{"import", "subscriptions", "p.csv", "--topic", "q", "--channel", "mail"}, files: map[string]string{"p.csv": "to,rule\n\"a@b.c,r\nd@e.f,r\n"}, code: 1,
			answers: map[string]string{"POST /v1/subscriptions": `{}`}, errs: []string{"in the row that begins on line 2", "as two double quotes"}},
		"import of lines behind a byte order mark": {args: []string{"import", "subscriptions", "-"}, stdin: "\xef\xbb\xbf{}\n",
			answers: map[string]string{"POST /v1/subscriptions": `{"created":1}`}, asked: "POST /v1/subscriptions?quiet=true {}", out: []string{"1 created"}},
		"import of CSV with a ragged row": {args: []string{"import", "subscriptions", "p.csv", "--topic", "q", "--channel", "mail"}, files: map[string]string{"p.csv": "to,rule\na@b.c\n"}, code: 2,
			answers: map[string]string{"POST /v1/subscriptions": `{}`}, errs: []string{"line 2: the row has 1 cells, but the file has 2 columns", "p.csv.errors"}},
		"import of CSV with empty rows": {args: []string{"import", "subscriptions", "p.csv", "--topic", "q", "--channel", "mail"}, files: map[string]string{"p.csv": "to,rule\na@b.c,r\n,\n,,\n"},
			answers: map[string]string{"POST /v1/subscriptions": `{"created":1}`}, asked: `POST /v1/subscriptions?quiet=true {"topic":"q","channel":"mail","to":"a@b.c","rule":"r"}`, out: []string{"1 created, 0 updated, 0 failed"}},
		"import of CSV without a topic":   {args: []string{"import", "subscriptions", "p.csv", "--channel", "mail"}, files: map[string]string{"p.csv": "to\na@b.c\n"}, code: 1, errs: []string{"no column topic", "with --topic"}},
		"import of CSV without a channel": {args: []string{"import", "subscriptions", "p.csv"}, files: map[string]string{"p.csv": "to,topic\na@b.c,q\n"}, code: 1, errs: []string{"no column channel", "with --channel"}},
		"import of a spreadsheet":         {args: []string{"import", "subscriptions", "p.xlsx"}, files: map[string]string{"p.xlsx": "PK\x03\x04\x14"}, code: 1, errs: []string{"p.xlsx: ", "save the table as CSV in UTF-8"}},
		"import of a compressed file":     {args: []string{"import", "subscribers", "p.gz"}, files: map[string]string{"p.gz": "\x1f\x8b\x08\x00"}, code: 1, errs: []string{"p.gz: ", "zcat"}},
		"import of subscribers from CSV":  {args: []string{"import", "subscribers", "p.csv"}, files: map[string]string{"p.csv": "to\na@b.c\n"}, code: 1, errs: []string{"imported from NDJSON", "fanfare import subscriptions"}},
		"import of nothing":               {args: []string{"import", "subscriptions", "nowhere.csv"}, code: 1, errs: []string{"nowhere.csv"}},

		"publish of lines": {args: []string{"publish", "quakes", "-", "--id-field", "id", "--time-field", "/at", "--lane", "urgent"}, stdin: `{"id":"1"}` + "\n",
			answers: map[string]string{"POST /v1/topics/quakes/events": accepted}, asked: `POST /v1/topics/quakes/events?id=%2Fid&lane=urgent&time=%2Fat {"id":"1"}`, out: []string{"evt-1 accepted\n"}},
		"publish of a JSON array": {args: []string{"publish", "quakes", "e.json"}, files: map[string]string{"e.json": "[\n {\"a\": 1},\n {\"a\": 2}\n]"},
			answers: map[string]string{"POST /v1/topics/quakes/events": accepted + `{"id":"evt-2","duplicate":true}`}, asked: "POST /v1/topics/quakes/events {\"a\":1}\n{\"a\":2}", out: []string{"1 event accepted, 1 duplicate, 0 failed"}},
		"publish of a CloudEvent": {args: []string{"publish", "-", "e.json"}, files: map[string]string{"e.json": `{"specversion":"1.0"}`},
			answers: map[string]string{"POST /v1/events": accepted}, asked: `POST /v1/events?format=cloudevents {"specversion":"1.0"}`, out: []string{"evt-1 accepted"}},
		"dry run of an event": {args: []string{"publish", "quakes", "e.json", "--dry-run", "--lane", "bulk", "--audience", "sub.vip", "--id-field", "n"}, files: map[string]string{"e.json": "{\n \"n\": 1\n}"},
			answers: map[string]string{"POST /v1/topics/quakes/match": `{"matched":3,"messages":2,"channels":[],"rules":[],"sample":[]}`},
			asked:   "POST /v1/topics/quakes/match?audience_filter=sub.vip&id=%2Fn&lane=bulk&sample=0 {\n \"n\": 1\n}", out: []string{"3 subscriptions match, 2 messages"}},
		"match": {args: []string{"match", "quakes", "e.json", "--sample", "0"}, files: map[string]string{"e.json": "{}"},
			answers: map[string]string{"POST /v1/topics/quakes/match": `{"matched":1,"messages":1}`}, asked: "POST /v1/topics/quakes/match?sample=0 {}", out: []string{"1 subscription matches, 1 message would be sent"}},
		"match with the flag that was required": {args: []string{"match", "quakes", "e.json", "--dry-run"}, files: map[string]string{"e.json": "{}"},
			answers: map[string]string{"POST /v1/topics/quakes/match": `{"matched":3}`}, out: []string{"3 subscriptions match"}},
		"dry run of a CloudEvent": {args: []string{"publish", "quakes", "e.json", "--dry-run"}, files: map[string]string{"e.json": "{\n\"specversion\":\"1.0\"}"},
			answers: map[string]string{"POST /v1/topics/quakes/match": `{"matched":3}`}, asked: "POST /v1/topics/quakes/match?sample=0 {\n\"specversion\":\"1.0\"}", out: []string{"3 subscriptions match"}},
		"dry run without a topic": {args: []string{"publish", "-", "e.json", "--dry-run"}, files: map[string]string{"e.json": `{"specversion":"1.0"}`}, code: 1, errs: []string{"a dry run requires a topic"}},
		"dry run of a message": {args: []string{"send", "--to", "a@b.c", "--channel", "mail", "--template", "t", "--dry-run"},
			answers: map[string]string{"POST /v1/dry-run/messages": `{"channel":"mail","messages":1,"rate":"2/s","hold":"waits for approval"}`},
			asked:   `POST /v1/dry-run/messages {"channel":"mail","to":"a@b.c","template":"t"}`, out: []string{"1 message would be sent over mail (2/s)", "it waits for approval"}},
		"publish of broken JSON": {args: []string{"publish", "q", "e.json"}, files: map[string]string{"e.json": "{\n\n\"a\": }"}, code: 1, errs: []string{"line 3", "not valid JSON"}},
		"publish with a bad line": {args: []string{"publish", "q", "-"}, stdin: "{\n",
			answers: map[string]string{"POST /v1/topics/q/events": `202 {"line":1,"error":{"code":"invalid","detail":"is not valid JSON"}}`}, code: 2, out: []string{"0 events accepted, 0 duplicates, 1 failed"}, errs: []string{"line 1: is not valid JSON", "use --format json"}},
		"publish and wait": {args: []string{"publish", "q", "-", "--wait"}, stdin: "{}\n",
			answers: map[string]string{"POST /v1/topics/q/events": accepted, "GET /v1/events/evt-1": broadcast}, code: 2, out: []string{"2 messages: 1 accepted, 1 failed"}, errs: []string{"1 message was not delivered"}},
		"publish as JSON": {args: []string{"publish", "q", "-", "--json", "--wait"}, stdin: "{}\n", code: 2,
			answers: map[string]string{"POST /v1/topics/q/events": accepted, "GET /v1/events/evt-1": broadcast}, out: []string{`"first": "evt-1"`, `"errors": []`, `"failed": 1`}},

		"status": {args: []string{"status"}, answers: map[string]string{"GET /v1/status": `{"version":"9","ready":false,"reason":"draining","durability":"fsync","deliveries":{"pending":1234567},"channels":[{"service":"news","name":"mail","last_error":"no route"}],"paused":[{"scope":{"kind":"all"},"reason":"test"},{"scope":{"kind":"service","name":"ops"},"since":"2026-11-20T15:19:12Z"}]}`},
			out: []string{":12\n", "not ready: draining", "1,234,567", "news/mail", "no route", "all since"}},
		"status of a cluster": {args: []string{"status"}, answers: map[string]string{"GET /v1/status": `{"cluster":{"leader":"one","standbys":1,"silent":["three"],"bus":{"embedded":true,"replicas":3,"current":2,"sync":"always"}}}`},
			out: []string{"cluster", "one leads, 1 standby responds; bus: 2 of 3 copies are current, embedded NATS; not responding: three\n"}},
		"nodes with one copy": {args: []string{"nodes"}, answers: map[string]string{"GET /v1/nodes": `{"clustered":true,"nodes":[],"bus":{"replicas":1,"current":1,"sync":"unknown"}}`},
			out: []string{"bus: 1 copy, not highly available, external NATS, sync mode not checked\n"}},
		"status without a leader": {args: []string{"status"}, answers: map[string]string{"GET /v1/status": `{"cluster":{"standbys":0}}`}, out: []string{"no leader, no standby responds\n"}},
		"nodes": {args: []string{"nodes"}, answers: map[string]string{"GET /v1/nodes": `{"clustered":true,"nodes":[` +
			`{"name":"one","url":"http://10.0.0.1:8085","version":"9","started_at":"2026-11-21T08:00:00Z","silent_seconds":1.9,"responding":true,"clock_skew_ms":-3.2,"leader":true,"lease_epoch":7},` +
			`{"name":"two","url":"http://10.0.0.2:8085","version":"9","started_at":"2026-11-21T08:00:00Z","silent_seconds":0.2,"responding":true,"clock_skew_ms":1500,"roles":["all"],"delivers":true,"connections":12},` +
			`{"name":"three","url":"http://10.0.0.3:8085","version":"8","started_at":"2026-11-21T08:00:00Z","silent_seconds":3725,"clock_skew_ms":0}]}`},
			out: []string{"NAME", "LAST SEEN", "leader", "1 s ago", "-3 ms", "http://10.0.0.2:8085", "standby, delivers        12", "0 s ago", "+1.5 s", "standby, not responding", "1h2m5s ago"}},
		"nodes as JSON":           {args: []string{"nodes", "--json"}, answers: map[string]string{"GET /v1/nodes": `{"clustered":false,"nodes":[]}`}, out: []string{`"clustered": false`, `"nodes": []`}},
		"nodes of a server alone": {args: []string{"nodes"}, answers: map[string]string{"GET /v1/nodes": `{"clustered":false,"nodes":[]}`}, out: []string{"not a node of a cluster"}},
		"nodes without a leader":  {args: []string{"nodes"}, answers: map[string]string{"GET /v1/nodes": `503 {"code":"unavailable","detail":"no node of the cluster leads at the moment; nothing was stored","hint":"try again in a moment"}`}, code: 1, errs: []string{"no node of the cluster leads"}},
		"status as JSON":          {args: []string{"status", "--json"}, answers: map[string]string{"GET /v1/status": `{"version":"9"}`}, out: []string{`"version": "9"`}},
		"trace of an event":       {args: []string{"trace", "q1"}, answers: map[string]string{"GET /v1/events/q1": broadcast}, out: []string{"news/quakes", "1 accepted, 1 failed", "+1.5s", "matched"}},
		"trace of what is told later": {args: []string{"trace", "q1"}, answers: map[string]string{"GET /v1/events/q1": `{"event":"evt-1","kind":"event","service":"news","topic":"quakes","state":"completed","gathered":[` +
			`{"cadence":"window 60s","due":"2026-11-20T08:01:00Z","recipients":7,"digest":"evt-9"},{"cadence":"daily 08:00","time_zone":"Europe/London","due":"2026-11-21T08:00:00Z","recipients":12345}]}`},
			out: []string{"went into the digest evt-9 (window 60s)", "12,345", "wait for daily 08:00 Europe/London, due 2026-11-21"}},
		"trace of a digest": {args: []string{"trace", "q1"}, answers: map[string]string{"GET /v1/events/q1": `{"event":"evt-9","kind":"digest","service":"news","state":"running","messages":5,"digest":{"cadence":"daily 08:00","time_zone":"Europe/London","due":"2026-11-21T08:00:00Z"}}`},
			out: []string{"digest", "news daily 08:00 Europe/London, due 2026-11-21"}},
		"status with digests": {args: []string{"status"}, answers: map[string]string{"GET /v1/status": `{"gathered":[{"service":"news","cadence":"daily 08:00","time_zone":"Asia/Tokyo","due":"2026-11-21T08:00:00Z","recipients":12345}]}`},
			out: []string{"DIGESTS OF", "daily 08:00 Asia/Tokyo", "12,345", "2026-11-21"}},
		"trace of a recipient of a digest": {args: []string{"trace", "q1", "--recipient", "a@b.c"}, answers: map[string]string{"GET /v1/events/q1/deliveries": `{"deliveries":[{"id":"dlv-1","kind":"digest","events":["evt-1","evt-2"],"address":"a@b.c","state":"accepted"}]}`}, out: []string{"(digest of 2)"}},
		"trace of a recipient":             {args: []string{"trace", "q1", "--recipient", "a@b.c"}, answers: map[string]string{"GET /v1/events/q1/deliveries": `{"deliveries":[{"id":"dlv-1","address":"a@b.c","state":"accepted","attempts":[{"attempt":1,"state":"accepted","code":250,"text":"ok","relay":"mx:25"}]}],"next":"c2"}`}, asked: "GET /v1/events/q1/deliveries?limit=100&recipient=a%40b.c", out: []string{"dlv-1", "250 ok (mx:25)", "--cursor c2"}},
		"trace of a subscriber":            {args: []string{"trace", "--subscriber", "a/b@c.d", "--limit", "7"}, answers: map[string]string{"GET /v1/subscribers/a/b@c.d/deliveries": `{"deliveries":[]}`}, asked: "GET /v1/subscribers/a%2Fb@c.d/deliveries?limit=7", out: []string{"no deliveries"}},
		"trace of nothing":                 {args: []string{"trace"}, code: 1, errs: []string{"the event is missing"}},
		"trace of the unknown":             {args: []string{"trace", "q2"}, code: 1, errs: []string{"no such thing"}},

		"pause all":          {args: []string{"pause", "--all", "--reason", "x"}, answers: map[string]string{"POST /v1/pause": "204 "}, asked: `POST /v1/pause {"scope":{"kind":"all"},"reason":"x"}`, out: []string{"paused all"}},
		"resume a service":   {args: []string{"resume", "--service", "news"}, answers: map[string]string{"POST /v1/resume": "204 "}, asked: `POST /v1/resume {"scope":{"kind":"service","name":"news"}}`},
		"cancel a broadcast": {args: []string{"cancel", "--broadcast", "evt-1"}, answers: map[string]string{"POST /v1/cancel": "204 "}, asked: `POST /v1/cancel {"scope":{"kind":"broadcast","name":"evt-1"}}`},
		"pause a channel":    {args: []string{"pause", "--channel", "mail", "--service", "news"}, answers: map[string]string{"POST /v1/pause": "204 "}, asked: `POST /v1/pause {"scope":{"kind":"channel","name":"news/mail"}}`},
		"pause of nothing":   {args: []string{"pause"}, code: 1, errs: []string{"--broadcast"}},
		"pause of too much":  {args: []string{"pause", "--all", "--broadcast", "x"}, code: 1, errs: []string{"all", "broadcast"}},
		"parked list":        {args: []string{"parked", "list"}, answers: map[string]string{"GET /v1/parked": `{"parked":[{"id":"p1","kind":"batch","reason":"panic\nline"}]}`}, out: []string{"p1", "panic⏎line"}},
		"parked as JSON":     {args: []string{"parked", "list", "--json"}, answers: map[string]string{"GET /v1/parked": `{}`}, out: []string{"[]\n"}},
		"parked retry":       {args: []string{"parked", "retry", "p1"}, answers: map[string]string{"POST /v1/parked/p1/retry": "204 "}, asked: "POST /v1/parked/p1/retry"},
		"parked drop":        {args: []string{"parked", "drop", "p1"}, answers: map[string]string{"DELETE /v1/parked/p1": "204 "}, asked: "DELETE /v1/parked/p1"},
		"key":                {args: []string{"key", "create", "--service", "news", "--name", "ci"}, answers: map[string]string{"POST /v1/keys": `201 {"id":"key-2","key":"k"}`}, asked: `POST /v1/keys {"service":"news","name":"ci"}`, out: []string{"k\n"}},
		"app password": {args: []string{"mailbox", "password", "create", "joe@example.org", "--name", "phone"}, answers: map[string]string{"POST /v1/mailboxes/joe@example.org/app-passwords": `201 {"id":"app-2","user":"joe@example.org","password":"p"}`},
			asked: `POST /v1/mailboxes/joe@example.org/app-passwords {"name":"phone"}`, out: []string{"p\n"}, errs: []string{"app-2", "joe@example.org", "not be shown again"}},
		"app passwords":         {args: []string{"mailbox", "password", "list", "joe@example.org"}, answers: map[string]string{"GET /v1/mailboxes/joe@example.org/app-passwords": `{"app_passwords":[{"id":"app-2","name":"phone\nx"}]}`}, out: []string{"app-2", "phone⏎x"}},
		"app passwords revoked": {args: []string{"mailbox", "password", "revoke", "joe@example.org", "app-2"}, answers: map[string]string{"DELETE /v1/mailboxes/joe@example.org/app-passwords/app-2": "204 "}, asked: "DELETE /v1/mailboxes/joe@example.org/app-passwords/app-2"},
		"key of no scope":       {args: []string{"key", "create", "--service", "news", "--scope", ""}, code: 1, errs: []string{"--scope is empty"}},
		"key of no service":     {args: []string{"key", "create"}, code: 1, errs: []string{"--service"}},
		"configuration":         {args: []string{"config", "reference"}, out: []string{"data_dir: ./fanfare-data", "FANFARE_LISTEN"}},
		"bad configuration":     {args: []string{"config", "check", "--config", "f.yaml"}, files: map[string]string{"f.yaml": "lisen: x\n"}, code: 1, errs: []string{"did you mean listen"}},
		"version":               {args: []string{"version"}, out: []string{"fanfare "}},
		"unknown command":       {args: []string{"explode"}, code: 1, errs: []string{`fanfare has no command "explode"`, "fanfare --help lists the commands"}},
		"mistyped command":      {args: []string{"--json", "statsu"}, code: 1, errs: []string{`fanfare has no command "statsu"`, "did you mean state or status?"}},
		"list without a must":   {args: []string{"message", "list"}, code: 1, errs: []string{"--reference is missing", "usage: fanfare message list --reference REFERENCE"}},
		"value of a switch":     {args: []string{"publish", "q", "-", "--wait=60s"}, code: 1, errs: []string{`--wait takes no value, but got "60s"`}},
		"number in words":       {args: []string{"trace", "q", "--limit", "ten"}, code: 1, errs: []string{`--limit: "ten" is not a whole number`}},
		"duration in days":      {args: []string{"key", "rotate", "key-2", "--grace", "1d"}, code: 1, errs: []string{`--grace: "1d" is not a duration`, "720h"}},
		"time without a zone":   {args: []string{"publish", "q", "-", "--not-before", "2026-12-01"}, code: 1, errs: []string{`--not-before: "2026-12-01" is not a time`, "2026-11-20T08:00:00Z"}},
		"unknown flag":          {args: []string{"status", "--nope"}, code: 1, errs: []string{"--nope", "fanfare status --help"}},
		"mistyped flag":         {args: []string{"serve", "--listn", "x"}, code: 1, errs: []string{"--listn", "did you mean --listen?"}},
		"unknown verb":          {args: []string{"topic", "lst"}, code: 1, errs: []string{`fanfare topic has no command "lst"`, "did you mean list?"}},
		"verb of no likeness":   {args: []string{"key", "--json", "xyzzyx"}, code: 1, errs: []string{"available commands: create, list, reseal, revoke, rotate"}},
		"too few arguments":     {args: []string{"explain", "ada"}, code: 1, errs: []string{"an argument is missing", "fanfare explain SUBSCRIPTION EVENT|FILE|-"}},
		"several services": {args: []string{"topic", "list"}, answers: map[string]string{"GET /v1/topics": `422 {"code":"invalid","detail":"name one","hint":"set the header X-Fanfare-Service or the query parameter service (a, b)"}`},
			code: 1, errs: []string{"use --service or FANFARE_SERVICE (a, b)"}},
		"refused key":         {args: []string{"status"}, answers: map[string]string{"GET /v1/status": `401 {"code":"unauthenticated","detail":"unknown or revoked API key","hint":"make one"}`}, code: 4, errs: []string{"unknown or revoked API key", "make one", "the key from FANFARE_KEY"}},
		"key for another one": {args: []string{"status"}, answers: map[string]string{"GET /v1/status": `403 {"code":"forbidden","detail":"not for you"}`}, code: 4, errs: []string{"not for you"}},
	} {
		t.Run(name, func(t *testing.T) {
			f := &fake{answers: test.answers}
			code, out, errs := run(t, f, test.files, test.stdin, test.args...)
			if code != test.code {
				t.Errorf("exit code %d, not %d", code, test.code)
			}
			if test.asked != "" && (len(f.asked) == 0 || f.asked[len(f.asked)-1] != test.asked) {
				t.Errorf("asked %q,\n  not %q", f.asked, test.asked)
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
			if t.Failed() {
				t.Logf("out: %s\nerr: %s", out, errs)
			}
		})
	}
}

func TestServerThatDoesNotAnswerHasItsOwnExitCode(t *testing.T) {
	var errs bytes.Buffer
	c := &cli{in: strings.NewReader("{}"), out: io.Discard, err: &errs, lookupEnv: func(k string) (string, bool) { return map[string]string{"FANFARE_KEY": "k"}[k], true }}
	if code := c.run(t.Context(), []string{"publish", "q", "-", "--server", "http://127.0.0.1:1"}); code != 3 || !strings.Contains(errs.String(), "cannot reach") || !strings.Contains(errs.String(), "FANFARE_SERVER") {
		t.Errorf("%d %s", code, errs.String())
	}
}

func TestEventsAreSentAsTheyHappen(t *testing.T) {
	arrived := make(chan string)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.NewResponseController(w).EnableFullDuplex()
		w.WriteHeader(202)
		lines := bufio.NewScanner(r.Body)
		for lines.Scan() {
			io.WriteString(w, `{"id":"evt-1"}`+"\n")
			arrived <- lines.Text()
		}
	}))
	defer s.Close()
	in, source := io.Pipe()
	c := &cli{in: in, out: io.Discard, err: io.Discard, lookupEnv: func(string) (string, bool) { return "", false }}
	code := make(chan int)
	go func() { code <- c.run(t.Context(), []string{"publish", "q", "-", "--server", s.URL, "--key", "k"}) }()
	for _, event := range []string{`{"a":1}`, `{"a":2}`} {
		io.WriteString(source, event+"\n")
		if got := <-arrived; got != event {
			t.Errorf("%s arrived as %s", event, got)
		}
	}
	source.Close()
	if got := <-code; got != 0 {
		t.Errorf("exit code %d", got)
	}
}

func TestKeyOfALocalServerIsFound(t *testing.T) {
	dir := t.TempDir()
	os.WriteFile(filepath.Join(dir, "admin.key"), []byte("from-file\n"), 0o600)
	for name, test := range map[string]struct {
		env  map[string]string
		args []string
		key  string
		code int
	}{
		"by flag":       {nil, []string{"status", "--data-dir", dir}, "Bearer from-file", 0},
		"by variable":   {map[string]string{"FANFARE_DATA_DIR": dir, "FANFARE_SERVER": "SERVER"}, []string{"status"}, "Bearer from-file", 0},
		"variable wins": {map[string]string{"FANFARE_DATA_DIR": dir, "FANFARE_KEY": "from-env"}, []string{"status"}, "Bearer from-env", 0},
		"flag wins":     {map[string]string{"FANFARE_KEY": "from-env"}, []string{"status", "--key", "from-flag"}, "Bearer from-flag", 0},
		"none":          {nil, []string{"status", "--data-dir", t.TempDir()}, "", 4},
	} {
		t.Run(name, func(t *testing.T) {
			f := &fake{answers: map[string]string{"GET /v1/status": `{}`}}
			s := httptest.NewServer(f)
			defer s.Close()
			c := &cli{out: io.Discard, err: io.Discard, lookupEnv: func(k string) (string, bool) {
				v, ok := test.env[k]
				return strings.ReplaceAll(v, "SERVER", s.URL), ok
			}}
			code := c.run(t.Context(), append(test.args, "--server", s.URL))
			if code != test.code || test.key != "" && strings.TrimSpace(f.keys[0]) != test.key {
				t.Errorf("%d %v", code, f.keys)
			}
		})
	}
}

func TestACommandWithoutAKeyReportsThatTheServerIsStarting(t *testing.T) {
	s := httptest.NewServer(&fake{answers: map[string]string{"GET /readyz": `503 {"code":"unavailable","detail":"the server is starting: load subscriptions, 12 of 100"}`}})
	defer s.Close()
	var errs bytes.Buffer
	c := &cli{out: io.Discard, err: &errs, lookupEnv: func(string) (string, bool) { return "", false }}
	if code := c.run(t.Context(), []string{"status", "--server", s.URL, "--data-dir", t.TempDir()}); code == 0 || !strings.Contains(errs.String(), "load subscriptions, 12 of 100") {
		t.Errorf("it ended with %d: %s", code, errs.String())
	}
}

func TestEveryCommandHasHelpWithAnExample(t *testing.T) {
	c := &cli{lookupEnv: func(string) (string, bool) { return "", false }}
	for _, command := range c.root().Commands() {
		for _, sub := range append(command.Commands(), command) {
			if sub.Runnable() && !sub.Hidden && sub.Example == "" && sub.Name() != "list" && sub.Name() != "report" {
				t.Errorf("%s has no example", sub.CommandPath())
			}
			if sub.Short == "" {
				t.Errorf("%s has no summary", sub.CommandPath())
			}
		}
	}
}

func FuzzTableBecomesLines(f *testing.F) {
	f.Add("to,data.a\nx,1\n\"y\nz\",\"\"\n")
	f.Fuzz(func(t *testing.T, table string) {
		in, err := bulkfile.NewCSV(strings.NewReader(table), client.Subscription{Topic: "t", Channel: "c"})
		if err != nil {
			return
		}
		c := in.Next()
		out := c.Body
		if bytes.Count(out, []byte("\n")) != len(c.Rows) {
			t.Errorf("%d rows became %q", len(c.Rows), out)
		}
		for i, line := range strings.Split(strings.TrimSuffix(string(out), "\n"), "\n") {
			if line != "" && (line[0] != '{' || line[len(line)-1] != '}') {
				t.Errorf("line %d is %q", i+1, line)
			}
		}
	})
}
