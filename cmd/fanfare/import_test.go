package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
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

// A store is a server that takes subscriptions: those whose address is bad it
// refuses, others it knows by address.
type store struct {
	known map[string]bool
	calls int
	fails map[int]string // calls that are answered with a problem instead
	each  func(call int) // before an answer
}

func (s *store) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/readyz" { // asked when an answer takes longer than two seconds
		return
	}
	s.calls++
	if s.each != nil {
		s.each(s.calls)
	}
	if problem, ok := s.fails[s.calls]; ok {
		_, _ = io.Copy(io.Discard, r.Body)
		w.WriteHeader(507)
		io.WriteString(w, problem)
		return
	}
	sum := client.PutSummary{Errors: []client.LineError{}}
	quiet := r.URL.Query().Get("quiet") == "true"
	lines := bufio.NewScanner(r.Body)
	lines.Buffer(nil, 1<<20)
	for n := 1; lines.Scan(); n++ {
		var one client.Subscription
		bad := client.LineError{Line: n}
		if err := json.Unmarshal(lines.Bytes(), &one); err != nil {
			bad.Error.Detail = "is not JSON"
		} else if !strings.Contains(one.To, "@") {
			bad.Error.Detail, bad.Error.Pointer = "is not an address", "/to"
		} else if one.Topic == "" {
			bad.Error.Detail, bad.Error.Pointer = "is missing", "/topic"
		}
		if bad.Error.Detail != "" {
			bad.Error.Code = "invalid"
			sum.Failed++
			if len(sum.Errors) < 2 { // a server names few
				sum.Errors = append(sum.Errors, bad)
			}
			if !quiet {
				text, _ := json.Marshal(bad)
				w.Write(append(text, '\n'))
			}
			continue
		}
		key := one.ID + one.To
		if s.known[key] {
			sum.Updated++
		} else {
			sum.Created++
		}
		s.known[key] = true
		if !quiet {
			io.WriteString(w, `{"id":"x","created":false}`+"\n")
		}
	}
	if quiet {
		json.NewEncoder(w).Encode(sum)
	}
}

// importer runs import commands against a store.
func importer(t *testing.T, s *store) func(ctx context.Context, args ...string) (code int, sum client.PutSummary, errs string) {
	t.Helper()
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	env := map[string]string{"FANFARE_SERVER": server.URL, "FANFARE_KEY": "secret"}
	return func(ctx context.Context, args ...string) (int, client.PutSummary, string) {
		t.Helper()
		var out, errs bytes.Buffer
		c := &cli{in: strings.NewReader(""), out: &out, err: &errs, lookupEnv: func(k string) (string, bool) { v, ok := env[k]; return v, ok }}
		code := c.run(ctx, append([]string{"import", "subscriptions", "--json"}, args...))
		var sum client.PutSummary
		if out.Len() > 0 {
			if err := json.Unmarshal(out.Bytes(), &sum); err != nil {
				t.Fatalf("%v: %s", err, out.String())
			}
		}
		return code, sum, errs.String()
	}
}

// many writes a file of n subscriptions, in which each line that bad picks is wrong.
func many(t *testing.T, name string, n int, bad func(line int) bool) string {
	t.Helper()
	var b strings.Builder
	if strings.HasSuffix(name, ".csv") {
		b.WriteString("to,topic,channel,data.note\n")
	}
	for i := range n {
		to := fmt.Sprintf("p%d@example.org", i)
		if bad(i + 1) {
			to = "nobody"
		}
		if strings.HasSuffix(name, ".csv") {
			fmt.Fprintf(&b, "%s,q,mail,\"two\nlines, %d\"\n", to, i)
		} else {
			fmt.Fprintf(&b, `{"topic":"q","to":"%s"}`+"\n", to)
		}
	}
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func never(int) bool { return false }

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func TestAnInterruptedImportGoesOnWhereItEnded(t *testing.T) {
	const lines = 2*bulkfile.MaxChunkLines + 1000
	for _, name := range []string{"people.ndjson", "people.csv"} {
		t.Run(name, func(t *testing.T) {
			path := many(t, name, lines, func(n int) bool { return n%40_000 == 7 }) // one in the first, one in each later chunk
			s := &store{known: map[string]bool{}, fails: map[int]string{2: `{"code":"disk_full","detail":"the disk is full","line":500}`}}
			run := importer(t, s)
			code, _, errs := run(t.Context(), path)
			if code != 1 || !strings.Contains(errs, "the disk is full") || !strings.Contains(errs, "after line") || !exists(path+".progress") {
				t.Fatalf("the first run ended with %d: %s", code, errs)
			}
			if line := fmt.Sprintf("line %d: the disk", bulkfile.MaxChunkLines+500); strings.HasSuffix(name, "json") && !strings.Contains(errs, line) {
				t.Errorf("it does not name %s: %s", line, errs)
			}
			ctx, cancel := context.WithCancel(t.Context())
			s.each = func(call int) {
				if call == 3 {
					cancel() // Ctrl-C while a chunk is on its way
				}
			}
			code, _, errs = run(ctx, path)
			if code != 1 || !strings.Contains(errs, "continuing after line") || !strings.Contains(errs, "stopped after line") {
				t.Fatalf("the second run ended with %d: %s", code, errs)
			}
			code, sum, errs := run(t.Context(), path)
			if code != 2 || sum.Created != lines-4 || sum.Updated != 0 || sum.Failed != 4 || len(s.known) != lines-4 {
				t.Errorf("the third run ended with %d: %+v %s", code, sum, errs)
			}
			if s.calls != 4 || exists(path+".progress") {
				t.Errorf("%d calls, and the progress is still there: %v", s.calls, exists(path+".progress"))
			}
			bad, err := os.ReadFile(path + ".errors")
			if err != nil || strings.Count(string(bad), "is not an address") != 4 {
				t.Errorf("bad lines: %s, %v", bad, err)
			}
		})
	}
}

func TestBadLinesCanBeMendedAndImported(t *testing.T) {
	for _, name := range []string{"people.ndjson", "people.csv"} {
		t.Run(name, func(t *testing.T) {
			path := many(t, name, 20, func(n int) bool { return n%5 == 0 })
			s := &store{known: map[string]bool{}}
			run := importer(t, s)
			code, sum, errs := run(t.Context(), path)
			if code != 2 || sum.Created != 16 || sum.Failed != 4 || len(sum.Errors) != 4 || !strings.Contains(errs, path+".errors") {
				t.Fatalf("%d %+v %s", code, sum, errs)
			}
			first := 5
			if strings.HasSuffix(name, "csv") {
				first = 10 // the header, and each row has two lines
			}
			if sum.Errors[0].Line != first {
				t.Errorf("the first bad line is %d, not %d", sum.Errors[0].Line, first)
			}
			bad, err := os.ReadFile(path + ".errors")
			if err != nil || strings.Count(string(bad), fmt.Sprintf("line %d: /to: is not an address", first)) != 1 {
				t.Fatalf("%s %v", bad, err)
			}
			for n := range 4 { // mended by hand
				bad = bytes.Replace(bad, []byte("nobody"), fmt.Appendf(nil, "m%d@example.org", n), 1)
			}
			if err := os.WriteFile(path+".errors", bad, 0o600); err != nil {
				t.Fatal(err)
			}
			code, sum, errs = run(t.Context(), path+".errors")
			if code != 0 || sum.Created != 4 || sum.Failed != 0 || exists(path+".errors.errors") {
				t.Errorf("mended: %d %+v %s", code, sum, errs)
			}
		})
	}
}

// A row that is no row, too, is left out, named, and mended where the others are; and
// what the command line said of all rows need not be said again.
func TestRowsThatCannotBeSentAreMendedLikeOthers(t *testing.T) {
	const table = `to,data,attributes.name
a@example.org,,Ada
b@example.org,,Bo,and more
c@example.org
d@example.org,not JSON,Dan
nobody,"{""floor"":3}",Eve
f@example.org,,Fay
`
	const refused = `to,data,attributes.name,topic,channel,error
b@example.org,,Bo,and more,q,mail,"line 3: the row has 4 cells, but the file has 3 columns (put a cell that contains a comma in double quotes)"
c@example.org,,,q,mail,"line 4: the row has 1 cells, but the file has 3 columns (put a cell that contains a comma in double quotes)"
d@example.org,not JSON,Dan,q,mail,"line 5: /data: the cell is not a JSON object (write it as {""name"":""value""}, or use a column data.NAME)"
nobody,"{""floor"":3}",Eve,q,mail,line 6: /to: is not an address
`
	path := filepath.Join(t.TempDir(), "people.csv")
	if err := os.WriteFile(path, []byte(table), 0o600); err != nil {
		t.Fatal(err)
	}
	s := &store{known: map[string]bool{}}
	run := importer(t, s)
	code, sum, errs := run(t.Context(), path, "--topic", "q", "--channel", "mail")
	if code != 2 || sum.Created != 2 || sum.Failed != 4 || len(sum.Errors) != 4 || sum.Errors[0].Line != 3 {
		t.Fatalf("%d %+v %s", code, sum, errs)
	}
	bad, err := os.ReadFile(path + ".errors")
	if err != nil || string(bad) != refused {
		t.Fatalf("%v\n%s", err, bad)
	}
	// As they are they are refused again, but the one that was only too short.
	if code, sum, errs := run(t.Context(), path+".errors"); code != 2 || sum.Created != 1 || sum.Failed != 3 {
		t.Fatalf("not mended: %d %+v %s", code, sum, errs)
	}
	mended := strings.NewReplacer(",and more", "", "not JSON", "", "nobody", "e@example.org").Replace(refused)
	if err := os.WriteFile(path+".errors", []byte(mended), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, sum, errs := run(t.Context(), path+".errors"); code != 0 || sum.Failed != 0 || len(s.known) != 6 {
		t.Errorf("mended: %d %+v %s", code, sum, errs)
	}
}

func TestAnImportDoesNotGoOnInAnotherFile(t *testing.T) {
	path := many(t, "people.ndjson", bulkfile.MaxChunkLines+10, never)
	s := &store{known: map[string]bool{}, fails: map[int]string{2: `{"code":"disk_full","detail":"full"}`}}
	run := importer(t, s)
	if code, _, errs := run(t.Context(), path); code != 1 || !exists(path+".progress") {
		t.Fatalf("%d %s", code, errs)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	text[10] = 'Q'
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	if code, _, errs := run(t.Context(), path); code != 1 || !strings.Contains(errs, "was changed") || !strings.Contains(errs, "--restart") {
		t.Errorf("%d %s", code, errs)
	}
	if code, sum, errs := run(t.Context(), path, "--restart"); code != 0 || sum.Created != 10 || sum.Updated != bulkfile.MaxChunkLines || strings.Contains(errs, "goes on") {
		t.Errorf("%d %+v %s", code, sum, errs)
	}
	if code, _, errs := importer(t, s)(t.Context(), path); code != 0 {
		t.Errorf("a finished import leaves nothing: %d %s", code, errs)
	}
}

func TestCellsBecomeWhatTheyAre(t *testing.T) {
	in, err := bulkfile.NewCSV(strings.NewReader("to,params,params.mag,data.list,data.text,data.number,subscriber,error\n"+
		`a@b.c,"{""mag"":1,""place"":""x""}",4.5,"[""de"",""en""]",007,"""5""",ada,line 3: no`+"\n"), client.Subscription{Topic: "q", Channel: "mail"})
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"topic":"q","channel":"mail","to":"a@b.c","subscriber":"ada","params":{"mag":4.5,"place":"x"},"data":{"list":["de","en"],"number":"5","text":"007"}}` + "\n"
	if c := in.Next(); string(c.Body) != want || !errors.Is(c.Err, io.EOF) {
		t.Errorf("%s %v", c.Body, c.Err)
	}
	in, err = bulkfile.NewCSV(strings.NewReader("to,data\na@b.c,x\n"), client.Subscription{Topic: "q", Channel: "mail"})
	if err != nil {
		t.Fatal(err)
	}
	if c := in.Next(); !errors.Is(c.Err, io.EOF) || len(c.Wrong) != 1 || c.Wrong[0].Line != 2 || c.Wrong[0].Reason.Pointer != "/data" {
		t.Errorf("%v, %+v", c.Err, c.Wrong)
	}
}

func TestALineThatDoesNotEndIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f.ndjson")
	if err := os.WriteFile(path, []byte("{}\n"+strings.Repeat("x", bulkfile.MaxLineBytes+1)), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, _, errs := importer(t, &store{known: map[string]bool{}})(t.Context(), path); code != 1 || !strings.Contains(errs, "line 2") {
		t.Errorf("%d %s", code, errs)
	}
}
