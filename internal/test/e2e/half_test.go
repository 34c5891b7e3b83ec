package e2e

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"fanfare.dev/fanfare/internal/sink"
)

// raw opens a connection to the server and sends the head of a request, with a
// length that is not going to be kept, or chunked where it is negative.
func (s *server) raw(method, path, contentType string, length int) net.Conn {
	s.t.Helper()
	conn, err := net.Dial("tcp", hostOf(s.t, s.url))
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		s.t.Fatal(err)
	}
	size := fmt.Sprintf("Content-Length: %d", length)
	if length < 0 {
		size = "Transfer-Encoding: chunked"
	}
	fmt.Fprintf(conn, "%s %s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nX-Fanfare-Service: news\r\nContent-Type: %s\r\n%s\r\n\r\n",
		method, path, s.key, contentType, size)
	return conn
}

// A body that breaks off leaves whole members or nothing: of JSON nothing, of
// NDJSON the lines that had arrived whole.
func TestHalfSentRequestLeavesNothingHalf(t *testing.T) {
	t.Parallel()
	s, r := newsroom(t, sink.Config{}, "")
	s.subscribe("reader@example.org")

	for _, cut := range []struct{ method, path, contentType, body string }{
		{"POST", "/v1/topics/story/events", plain, `{"title":"half an ev`},
		{"POST", "/v1/topics/story/events", plain, `{"title":"whole, but shorter than it said"}`},
		{"POST", "/v1/events", cloudbatch, `[{"specversion":"1.0","id":"1","source":"/a","type":"story","data":{"title":"first of a half batch"}},`},
		{"POST", "/v1/subscriptions", plain, `{"topic":"story","channel":"email","to":"half@example.org"}`},
		{"PUT", "/v1/subscriptions/half", plain, `{"topic":"story","channel":"email","to":"half@example.org"`},
		{"POST", "/v1/apply", yaml, "service: news\nchannels:\n"},
	} {
		conn := s.raw(cut.method, cut.path, cut.contentType, len(cut.body)+100)
		fmt.Fprint(conn, cut.body)
		conn.(*net.TCPConn).CloseWrite()
		answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err == nil {
			if answer.StatusCode < 400 {
				t.Errorf("%s %s, cut off: got %d", cut.method, cut.path, answer.StatusCode)
			}
			answer.Body.Close()
		}
		conn.Close()
	}
	s.http.must(404, "GET", "/v1/subscriptions/half", "", "")
	s.http.must(404, "GET", "/v1/subscribers/half@example.org/deliveries", "", "")

	// Two whole lines, and a third that breaks off inside an address: read as it
	// stands it would be another person's.
	conn := s.raw("POST", "/v1/subscriptions", lines, 10_000)
	fmt.Fprint(conn, `{"id":"one","topic":"story","channel":"email","to":"one@example.org"}
{"id":"two","topic":"story","channel":"email","to":"two@example.org"}
{"id":"three","topic":"story","channel":"email","to":"three@example.org"`)
	conn.(*net.TCPConn).CloseWrite()
	answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	text, _ := io.ReadAll(answer.Body) // the connection ends behind it
	if got := strings.Split(strings.TrimSpace(string(text)), "\n"); len(got) != 3 ||
		!strings.Contains(got[0], `"id":"one"`) || !strings.Contains(got[1], `"id":"two"`) || !strings.Contains(got[2], `"line":3`) {
		t.Errorf("answered %s", text)
	}
	s.http.must(200, "GET", "/v1/subscriptions/two", "", "")
	s.http.must(404, "GET", "/v1/subscriptions/three", "", "")

	// Gone without a word, in the middle of a chunk of events.
	conn = s.raw("POST", "/v1/topics/story/events?id=/title", lines, -1)
	event := `{"title":"kept"}` + "\n"
	fmt.Fprintf(conn, "%x\r\n%s\r\n", len(event), event)
	fmt.Fprintf(conn, "%x\r\n%s", 100, `{"title":"lo`)
	conn.Close()

	s.http.completed("kept")
	r.only("reader@example.org", "one@example.org", "two@example.org")
	list := s.http.must(200, "GET", "/v1/broadcasts", "", "")
	if n := strings.Count(list, `"event":`); n != 1 {
		t.Errorf("%d events were kept, want 1: %s", n, list)
	}
}
