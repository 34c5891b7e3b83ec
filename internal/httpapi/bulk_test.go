package httpapi

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/httpapi/httpio"
	"fanfare.dev/fanfare/internal/httpapi/listener"
	"fanfare.dev/fanfare/internal/httpapi/ndjson"
	"fanfare.dev/fanfare/internal/httpapi/wire"
)

// live serves the world on a real socket.
func live(t testing.TB, w *world) (address string, s *listener.Server) {
	t.Helper()
	s, err := listener.Listen(listener.Options{Address: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	s.Open(w.api())
	t.Cleanup(func() { s.Shutdown(t.Context()) })
	return s.Addr().String(), s
}

// impatient returns a client that fails the test instead of waiting forever.
func impatient() *http.Client { return &http.Client{Timeout: 5 * time.Minute} }

// line is one response line of a bulk import.
type line struct {
	ID      string       `json:"id"`
	Created *bool        `json:"created"`
	Line    int          `json:"line"`
	Error   *wire.Member `json:"error"`
}

func bulk(t testing.TB, address, query string, body io.Reader) *http.Response {
	t.Helper()
	r, _ := http.NewRequest("POST", "http://"+address+"/v1/subscriptions"+query, body)
	r.Header.Set("Authorization", "Bearer "+adminSecret)
	r.Header.Set("Content-Type", httpio.NDJSON)
	response, err := impatient().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { response.Body.Close() })
	return response
}

func lines(t testing.TB, r io.Reader) []line {
	t.Helper()
	var all []line
	d := json.NewDecoder(r)
	for {
		var l line
		if err := d.Decode(&l); err == io.EOF {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, l)
	}
}

func TestImportAnswersEachLineInOrder(t *testing.T) {
	w := newWorld()
	address, _ := live(t, w)
	const n = 30_000
	var body strings.Builder
	type want struct {
		id   string
		line int // if bad
	}
	var wants []want
	number := 0
	write := func(text string) { body.WriteString(text + "\n"); number++ }
	for i := range n {
		switch {
		case i%101 == 7:
			write("")
			write(`{"nonsense":1}`)
			wants = append(wants, want{line: number})
		case i%997 == 3:
			write(`{"id":"x","to":"a\r\nb","topic":"q","channel":"m"}`)
			wants = append(wants, want{line: number})
		default:
			id := fmt.Sprintf("id-%d-%s", i, strings.Repeat("x", i%50))
			write(`  {"id":"` + id + `","topic":"quakes","channel":"mail","to":"a@example.com"}` + "\r")
			wants = append(wants, want{id: id})
		}
	}
	response := bulk(t, address, "", strings.NewReader(body.String()))
	if response.StatusCode != 200 || response.Header.Get("Content-Type") != httpio.NDJSON {
		t.Fatalf("%d %s", response.StatusCode, response.Header.Get("Content-Type"))
	}
	got := lines(t, response.Body)
	if len(got) != len(wants) {
		t.Fatalf("%d answers to %d lines", len(got), len(wants))
	}
	for i, g := range got {
		if g.ID != wants[i].id || g.Line != wants[i].line || (g.Error != nil) != (wants[i].line > 0) {
			t.Fatalf("answer %d is %+v, not %+v", i, g, wants[i])
		}
	}
	for i := 1; i < len(w.puts); i++ {
		var a, b int
		fmt.Sscanf(w.puts[i-1].ID, "id-%d-", &a)
		fmt.Sscanf(w.puts[i].ID, "id-%d-", &b)
		if a >= b {
			t.Fatalf("%s was put before %s", w.puts[i-1].ID, w.puts[i].ID)
		}
	}
}

func TestImportSummaryCountsAndNamesTheFirstBadLines(t *testing.T) {
	address, _ := live(t, newWorld())
	var body strings.Builder
	for i := range 1000 {
		if i%2 == 1 {
			body.WriteString("{}{}\n")
		} else {
			fmt.Fprintf(&body, `{"id":"id-%d","topic":"q","channel":"m","to":"a@b.c"}`+"\n", i%400)
		}
	}
	var sum wire.PutSummary
	response := bulk(t, address, "?quiet=true", strings.NewReader(body.String()))
	if err := json.NewDecoder(response.Body).Decode(&sum); err != nil || response.StatusCode != 200 {
		t.Fatal(err, response.StatusCode)
	}
	if sum.Created != 200 || sum.Updated != 300 || sum.Failed != 500 || len(sum.Errors) != wire.MaxErrors || sum.Errors[1].Line != 4 {
		t.Errorf("%d created, %d updated, %d failed, %d named", sum.Created, sum.Updated, sum.Failed, len(sum.Errors))
	}
}

func TestAnImportTellsWhatItsConditionsCost(t *testing.T) {
	lines := oneSub + "\n" + strings.Replace(oneSub, "{", `{"filter":"event.mag != 4","id":"unindexed",`, 1)
	const unindexed = `{"id":"unindexed","created":true,"matching":{"indexed":false,"ns_per_event":40,"reason":"!= cannot be indexed"}}`
	rec := ask(t, newWorld().api(), "POST", "/v1/subscriptions", lines, "Content-Type", httpio.NDJSON)
	if answers := strings.Split(rec.Body.String(), "\n"); strings.Contains(answers[0], "matching") || answers[1] != unindexed {
		t.Errorf("answered %s", rec.Body)
	}
	rec = ask(t, newWorld().api(), "POST", "/v1/subscriptions?quiet=true", lines, "Content-Type", httpio.NDJSON)
	if !strings.Contains(rec.Body.String(), `"unindexed":1,"ns_per_event":40}`) {
		t.Errorf("in short %s", rec.Body)
	}
}

func TestImportPrefersMinimalAnswers(t *testing.T) {
	rec := ask(t, newWorld().api(), "POST", "/v1/subscriptions", oneSub, "Content-Type", httpio.NDJSON, "Prefer", "return=minimal")
	if rec.Code != 200 || !strings.Contains(rec.Body.String(), `"created":1`) {
		t.Errorf("%d %s", rec.Code, rec.Body)
	}
}

// raw writes HTTP by hand, to send requests that clients do not send.
func raw(t testing.TB, address, head string) (*net.TCPConn, *bufio.Reader) {
	t.Helper()
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	io.WriteString(c, strings.ReplaceAll(head, "\n", "\r\n")+"Host: x\r\nAuthorization: Bearer "+adminSecret+"\r\n\r\n")
	return c.(*net.TCPConn), bufio.NewReader(c)
}

func sub(id string) string {
	return `{"id":"` + id + `","topic":"quakes","channel":"mail","to":"a@example.com"}` + "\n"
}

func TestHalfSentImportKeepsWholeLinesAndSaysWhereItBroke(t *testing.T) {
	for name, head := range map[string]string{
		"Content-Length": "POST /v1/subscriptions HTTP/1.1\nContent-Type: application/x-ndjson\nContent-Length: 100000\n",
		"chunked":        "POST /v1/subscriptions HTTP/1.1\nContent-Type: application/x-ndjson\nTransfer-Encoding: chunked\n",
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			address, _ := live(t, w)
			c, in := raw(t, address, head)
			body := sub("one") + sub("two") + `{"id":"thr`
			if name == "chunked" {
				body = fmt.Sprintf("%x\r\n%s\r\n", len(body), body)
			}
			io.WriteString(c, body)
			c.CloseWrite()
			response, err := http.ReadResponse(in, nil)
			if err != nil {
				t.Fatal(err)
			}
			got := lines(t, response.Body)
			if len(got) != 3 || got[0].ID != "one" || got[1].ID != "two" || got[2].Line != 3 || got[2].Error == nil || !strings.Contains(got[2].Error.Detail, "before the end of the body") {
				t.Errorf("answered %+v", got)
			}
			if len(w.puts) != 2 {
				t.Errorf("%d are stored", len(w.puts))
			}
		})
	}
}

func TestHalfSentSingleRequestStoresNothing(t *testing.T) {
	for _, target := range []string{"/v1/subscriptions", "/v1/topics/quakes/events", "/v1/apply", "/v1/keys"} {
		w := newWorld()
		address, _ := live(t, w)
		c, in := raw(t, address, "POST "+target+" HTTP/1.1\nContent-Type: application/json\nContent-Length: 1000\n")
		io.WriteString(c, `{"mag":1}`)
		c.CloseWrite()
		response, err := http.ReadResponse(in, nil)
		if err != nil {
			t.Fatal(err)
		}
		var p wire.Problem
		json.NewDecoder(response.Body).Decode(&p)
		if response.StatusCode != 422 || !strings.Contains(p.Detail, "before the end of the body") || len(w.puts)+len(w.posted)+len(w.applied) > 0 {
			t.Errorf("%s: %d %+v", target, response.StatusCode, p)
		}
	}
}

func TestLastLineNeedsNoLineEnd(t *testing.T) {
	w := newWorld()
	address, _ := live(t, w)
	got := lines(t, bulk(t, address, "", strings.NewReader(sub("one")+strings.TrimSpace(sub("two")))).Body)
	if len(got) != 2 || got[1].ID != "two" {
		t.Errorf("answered %+v", got)
	}
	if got := lines(t, bulk(t, address, "", strings.NewReader("")).Body); len(got) != 0 {
		t.Errorf("empty body answered %+v", got)
	}
}

func TestClientThatWaitsForAnswersGetsThem(t *testing.T) {
	w := newWorld()
	address, _ := live(t, w)
	out, in := io.Pipe()
	answers := make(chan *http.Response)
	go func() { answers <- bulk(t, address, "", out) }()
	io.WriteString(in, sub("id-0"))
	response := <-answers
	read := bufio.NewReader(response.Body)
	for i := range 20 {
		answer, err := read.ReadString('\n')
		if err != nil || !strings.Contains(answer, fmt.Sprintf(`"id-%d"`, i)) {
			t.Fatalf("answer %d: %s %v", i, answer, err)
		}
		io.WriteString(in, sub(fmt.Sprintf("id-%d", i+1)))
	}
	in.Close()
	io.Copy(io.Discard, read)
}

func TestLongLineIsRefusedAndTheOthersGoOn(t *testing.T) {
	for name, size := range map[string]int{"over the line limit": importLineBytes + 1, "over a chunk": ndjson.ChunkBytes + 1, "over several chunks": 5*ndjson.ChunkBytes + 77} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			address, _ := live(t, w)
			body := sub("one") + strings.Repeat("x", size) + "\n" + sub("three") + "\n" + sub("five") + strings.Repeat("y", size)
			got := lines(t, bulk(t, address, "", strings.NewReader(body)).Body)
			if len(got) != 5 || got[0].ID != "one" || got[1].Line != 2 || got[1].Error.Code != fanfare.TooLarge || got[2].ID != "three" || got[3].ID != "five" ||
				got[4].Line != 6 || got[4].Error.Code != fanfare.TooLarge {
				t.Errorf("answered %+v", got)
			}
		})
	}
}

func TestFullDiskInTheMiddleSaysFromWhere(t *testing.T) {
	var body strings.Builder
	for i := range 12_000 {
		body.WriteString(sub(fmt.Sprint("id-", i)))
	}
	w := newWorld()
	w.fail, w.failFrom = &fanfare.Error{Code: fanfare.DiskFull, Message: "the disk is full"}, 6000
	address, _ := live(t, w)
	got := lines(t, bulk(t, address, "", strings.NewReader(body.String())).Body)
	last := got[len(got)-1]
	if last.Error == nil || last.Error.Code != fanfare.DiskFull || last.Line != len(w.puts)+1 || len(got) != len(w.puts)+1 {
		t.Errorf("%d stored, %d answers, the last is %+v", len(w.puts), len(got), last)
	}

	w = newWorld()
	w.fail, w.failFrom = &fanfare.Error{Code: fanfare.DiskFull, Message: "the disk is full"}, 6000
	address, _ = live(t, w)
	response := bulk(t, address, "?quiet=true", strings.NewReader(body.String()))
	var p wire.Problem
	json.NewDecoder(response.Body).Decode(&p)
	if response.StatusCode != 507 || p.Code != fanfare.DiskFull || p.Line != len(w.puts)+1 || !strings.Contains(p.Hint, "lines before this one are stored") {
		t.Errorf("%d %+v, %d stored", response.StatusCode, p, len(w.puts))
	}
}

func TestStopEndsAnImportWithAWordAboutTheRest(t *testing.T) {
	w := newWorld()
	address, s := live(t, w)
	out, in := io.Pipe()
	answers := make(chan *http.Response)
	go func() { answers <- bulk(t, address, "", out) }()
	io.WriteString(in, sub("one"))
	response := <-answers
	read := bufio.NewReader(response.Body)
	read.ReadString('\n')
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	if err := s.Shutdown(ctx); err != nil {
		t.Error(err)
	}
	got := lines(t, read)
	if len(got) != 1 || got[0].Line != 2 || got[0].Error.Code != fanfare.Unavailable {
		t.Errorf("answered %+v", got)
	}
	in.Close()
}

func TestTooManyImportsAreRefused(t *testing.T) {
	w := newWorld()
	a := w.api()
	for range maxBulk {
		a.bulk <- struct{}{}
	}
	problemIn(t, ask(t, a, "POST", "/v1/subscriptions", oneSub, "Content-Type", httpio.NDJSON), 503, fanfare.Unavailable)
	<-a.bulk
	if rec := ask(t, a, "POST", "/v1/subscriptions", oneSub, "Content-Type", httpio.NDJSON); rec.Code != 200 {
		t.Errorf("a free place is not used: %d", rec.Code)
	}
	if len(a.bulk) != maxBulk-1 {
		t.Errorf("%d places are taken", len(a.bulk))
	}
}

func TestKeepAliveConnectionServesOnAfterAnImport(t *testing.T) {
	w := newWorld()
	address, _ := live(t, w)
	c, in := raw(t, address, "POST /v1/subscriptions HTTP/1.1\nContent-Type: application/x-ndjson\nContent-Length: "+fmt.Sprint(len(sub("one")))+"\n")
	io.WriteString(c, sub("one"))
	for i := range 3 {
		response, err := http.ReadResponse(in, nil)
		if err != nil || response.StatusCode != 200 {
			t.Fatal(i, err, response)
		}
		io.Copy(io.Discard, response.Body)
		fmt.Fprintf(c, "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
	}
}

func FuzzImportNeverLosesALine(f *testing.F) {
	f.Add([]byte(sub("a")+"\n\n"+sub("b")), 7)
	f.Add([]byte("x\r\n{}\n  \n"+sub("b")+"{"), 1)
	f.Fuzz(func(t *testing.T, body []byte, step int) {
		r, _ := http.NewRequest("POST", "/v1/subscriptions", io.NopCloser(&slow{body, max(1, step%100)}))
		r.Header.Set("Authorization", "Bearer "+adminSecret)
		r.Header.Set("Content-Type", httpio.NDJSON)
		rec := serve(newWorld().api(), r)
		want := 0
		for l := range bytes.SplitSeq(body, []byte("\n")) {
			if len(bytes.TrimSpace(l)) > 0 {
				want++
			}
		}
		if got := bytes.Count(rec.Body.Bytes(), []byte("\n")); got != want || rec.Code != 200 {
			t.Errorf("%d answers to %d lines: %d %s", got, want, rec.Code, rec.Body)
		}
	})
}

// slow returns a few bytes at a time.
type slow struct {
	rest []byte
	step int
}

func (s *slow) Read(b []byte) (int, error) {
	if len(s.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(b, s.rest[:min(s.step, len(s.rest))])
	s.rest = s.rest[n:]
	return n, nil
}
