package session

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"fanfare.dev/fanfare/client"
	"fanfare.dev/fanfare/internal/session/frame"
	"fanfare.dev/fanfare/internal/session/websocket"
)

// BenchmarkTinyRequests measures what a request and its response cost the client and the test together. The test confirms
// each frame and answers it with a frame of as many responses.
func BenchmarkTinyRequests(b *testing.B) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, err := websocket.Accept(w, r, frame.ClientProtocol)
		if err != nil {
			b.Error(err)
			return
		}
		write := func(data []byte) { _ = conn.Write(b.Context(), data) } // Read fails after it
		write(frame.JSON(frame.Welcome, []byte(`{"window":20000,"message_limit":1000,"from":1}`)))
		last := uint64(0)
		var data []byte
		for {
			got, err := conn.Read(b.Context())
			if err != nil {
				return
			}
			h, _, _ := frame.Parse(got) // the client made it
			if h.Type != frame.Requests {
				continue
			}
			data = frame.AppendHeader(data[:0], frame.Header{Type: frame.Responses, Count: h.Count, First: h.First})
			for range h.Count {
				last++
				data = frame.AppendResponse(data, &frame.Response{Request: last, Body: []byte("1234"), Attempts: 1})
			}
			write(frame.Token(frame.Accepted, 0, last))
			write(data)
			write(frame.Token(frame.Window, 0, last+20_000))
		}
	}))
	defer s.Close()
	c, err := client.New(s.URL, "")
	if err != nil {
		b.Fatal(err)
	}
	cl, err := (&Session{api: c, id: "ses-1"}).Client(b.Context(), "a")
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	b.ResetTimer()
	go func() {
		body := []byte("1234")
		for range b.N {
			if _, err := cl.Send(b.Context(), body); err != nil {
				b.Error(err)
				return
			}
		}
	}()
	for r, err := range cl.Responses(b.Context()) {
		if err != nil {
			b.Fatal(err)
		}
		if r.Number == uint64(b.N) {
			break
		}
	}
	b.StopTimer()
	if err := cl.Close(b.Context()); err != nil {
		b.Error(err)
	}
}
