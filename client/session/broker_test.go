package session

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/client"
	"fanfare.dev/fanfare/internal/httpapi/wire"
	"fanfare.dev/fanfare/internal/session/frame"
	"fanfare.dev/fanfare/internal/session/websocket"
)

// A testBroker keeps the streams of clients in memory and answers each request with its body, in the order of the requests.
// It ends connections without a warning when the test asks for it.
type testBroker struct {
	t        *testing.T
	server   *httptest.Server
	window   uint64
	lose     bool // the first frame accepted, and the connection with it
	dropAt   int  // after this many frames from the client, in turn with further ones; 0: never
	mu       sync.Mutex
	sessions int
	streams  map[string]*testStream // by session/client
	gone     bool                   // the sessions have ended
}

type testStream struct {
	requests  uint64
	accepted  uint64
	bodies    []string // by request
	responses [][]byte // records
	received  uint64
	ended     bool
	ids       map[string]string
	told      []frame.Exception
	conn      *websocket.Conn
	opened    int
}

func newBroker(t *testing.T) *testBroker {
	b := &testBroker{t: t, window: 1000, streams: map[string]*testStream{}}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/sessions", func(w http.ResponseWriter, r *http.Request) {
		var in wire.SessionRequest
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
			t.Error(err)
		}
		b.mu.Lock()
		b.sessions++
		id := fmt.Sprintf("ses-%d", b.sessions)
		b.mu.Unlock()
		w.WriteHeader(http.StatusCreated)
		_ = json.NewEncoder(w).Encode(wire.Session{ID: id, Worker: in.Worker, State: "open", Resends: 3})
	})
	mux.HandleFunc("GET /v1/sessions/{id}", func(w http.ResponseWriter, r *http.Request) {
		_ = json.NewEncoder(w).Encode(wire.Session{ID: r.PathValue("id"), State: "open"})
	})
	mux.HandleFunc("DELETE /v1/sessions/{id}", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	mux.HandleFunc("GET /v1/sessions/{id}/clients/{client}/stream", b.stream)
	b.server = httptest.NewServer(mux)
	t.Cleanup(b.server.Close)
	t.Cleanup(b.server.CloseClientConnections)
	return b
}

func (b *testBroker) open() *Session {
	c, err := client.New(b.server.URL, "key")
	if err != nil {
		b.t.Fatal(err)
	}
	s, err := Open(b.t.Context(), c, Options{Worker: "echo"})
	if err != nil {
		b.t.Fatal(err)
	}
	return s
}

func (b *testBroker) of(session, name string) *testStream {
	b.mu.Lock()
	defer b.mu.Unlock()
	st := b.streams[session+"/"+name]
	if st == nil {
		st = &testStream{ids: map[string]string{}}
		b.streams[session+"/"+name] = st
	}
	return st
}

func (b *testBroker) problem(code fanfare.Code, text string) []byte {
	p, err := json.Marshal(wire.Problem{Member: wire.Member{Code: code, Detail: text}})
	if err != nil {
		b.t.Fatal(err)
	}
	return p
}

func (b *testBroker) stream(w http.ResponseWriter, r *http.Request) {
	b.mu.Lock()
	gone := b.gone
	b.mu.Unlock()
	if gone {
		w.WriteHeader(http.StatusNotFound)
		_, _ = w.Write(b.problem(fanfare.NotFound, "there is no session of this id"))
		return
	}
	st := b.of(r.PathValue("id"), r.PathValue("client"))
	conn, err := websocket.Accept(w, r, frame.ClientProtocol)
	if err != nil {
		b.t.Error(err)
		return
	}
	b.mu.Lock()
	if st.conn != nil {
		old := st.conn
		go func() { _ = old.Close(4001, "") }()
	}
	st.conn = conn
	st.opened++
	dropAt := b.dropAt * (1 + st.opened%3)
	from := st.received + 1
	if text := r.URL.Query().Get("from"); text != "" {
		from, _ = strconv.ParseUint(text, 10, 64)
	}
	welcome, _ := json.Marshal(frame.ClientWelcome{Session: r.PathValue("id"), Client: r.PathValue("client"), Requests: st.requests, Accepted: st.accepted, Responses: uint64(len(st.responses)), FirstResponse: 1, From: from,
		Ended: st.ended, Window: st.requests + b.window, MessageLimit: 1 << 20})
	b.mu.Unlock()
	write := func(data []byte) { _ = conn.Write(b.t.Context(), data) } // the next Read fails
	write(frame.JSON(frame.Welcome, welcome))
	if text := r.URL.Query().Get("accepted"); text != "" {
		known, _ := strconv.ParseUint(text, 10, 64)
		b.mu.Lock()
		again := frame.Header{Type: frame.Accepted, First: st.requests}
		var exceptions []byte
		for _, e := range st.told {
			if e.Number > known {
				exceptions = frame.AppendException(exceptions, &e)
				again.Count++
			}
		}
		b.mu.Unlock()
		write(append(frame.AppendHeader(nil, again), exceptions...))
	}
	sent := from - 1
	answer := func(first bool) {
		b.mu.Lock()
		data := frame.AppendHeader(nil, frame.Header{Type: frame.Responses, Count: uint32(uint64(len(st.responses)) - sent), First: sent + 1})
		for _, record := range st.responses[sent:] {
			data = append(data, record...)
		}
		more := uint64(len(st.responses)) > sent
		sent = uint64(len(st.responses))
		finished := st.ended && (more || first)
		b.mu.Unlock()
		if more {
			write(data)
		}
		if finished {
			write(frame.Token(frame.Done, 0, sent))
		}
	}
	answer(true)
	for n := 1; ; n++ {
		data, err := conn.Read(b.t.Context())
		if err != nil {
			return
		}
		if dropAt > 0 && n >= dropAt {
			go func() { _ = conn.Close(1001, "the broker stops") }()
			return
		}
		h, payload, err := frame.Parse(data)
		if err != nil {
			b.t.Error(err)
			return
		}
		switch h.Type {
		case frame.Requests:
			taken := b.take(st, h, payload)
			b.mu.Lock()
			lose := b.lose
			b.lose = false
			b.mu.Unlock()
			if lose {
				go func() { _ = conn.Close(1001, "the broker stops") }()
				return
			}
			write(taken)
			b.mu.Lock()
			window := st.requests + b.window
			b.mu.Unlock()
			write(frame.Token(frame.Window, 0, window))
			answer(false)
		case frame.Flush:
			b.mu.Lock()
			data := frame.AppendHeader(nil, frame.Header{Type: frame.Flushed, First: h.First})
			data = binary.LittleEndian.AppendUint64(data, st.requests)
			data = binary.LittleEndian.AppendUint64(data, st.accepted)
			b.mu.Unlock()
			write(data)
		case frame.End:
			b.mu.Lock()
			fits := h.First == 1<<64-1 || h.First == st.accepted
			st.ended = st.ended || fits
			accepted := st.accepted
			b.mu.Unlock()
			if !fits {
				write(frame.JSON(frame.Problem, b.problem(fanfare.Conflict, fmt.Sprintf("%d requests are accepted, not %d", accepted, h.First))))
				continue
			}
			write(frame.Token(frame.Ended, 0, accepted))
			answer(true)
		case frame.Received:
			b.mu.Lock()
			if h.First > uint64(len(st.responses)) {
				b.t.Errorf("the client confirms response %d of %d", h.First, len(st.responses))
			}
			st.received = max(st.received, h.First)
			b.mu.Unlock()
		case frame.Close:
			write(frame.JSON(frame.Closed, b.problem(fanfare.Conflict, "the client was removed")))
			_ = conn.Close(1000, "")
			return
		default:
			b.t.Errorf("the client sent a frame of type %d", h.Type)
		}
	}
}

// take keeps requests and returns the frame that confirms them.
func (b *testBroker) take(st *testStream, h frame.Header, payload []byte) []byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	if h.First > st.requests+1 {
		b.t.Errorf("requests are missing: %d follows %d", h.First, st.requests)
	}
	if last := h.First + uint64(h.Count) - 1; last > st.requests+b.window {
		b.t.Errorf("request %d is above the window", last)
	}
	var exceptions []byte
	count := uint32(0)
	var q frame.Request
	for i := range uint64(h.Count) {
		var err error
		if payload, err = frame.NextRequest(payload, &q); err != nil {
			b.t.Error(err)
			break
		}
		n := h.First + i
		if n <= st.requests {
			if n <= uint64(len(st.bodies)) && st.bodies[n-1] != string(q.Body) {
				b.t.Errorf("request %d was sent again with other content", n)
			}
			continue
		}
		st.requests = n
		st.bodies = append(st.bodies, string(q.Body))
		if id := string(q.ID); id != "" {
			if body, known := st.ids[id]; known {
				e := frame.Exception{Number: n}
				if body != string(q.Body) {
					e.Refused, e.Problem = true, b.problem(fanfare.KeyReused, "the id was sent with other content")
				}
				exceptions = frame.AppendException(exceptions, &e)
				st.told = append(st.told, e)
				count++
				continue
			}
			st.ids[id] = string(q.Body)
		}
		st.accepted++
		r := frame.Response{Request: n, ID: q.ID, UserData: q.UserData, Body: q.Body, Attempts: 1}
		if strings.HasPrefix(string(q.Body), "fault") {
			r.Status, r.Body = frame.Fault, []byte(`{"code":"fault","message":"it failed","detail":"somewhere"}`)
		}
		st.responses = append(st.responses, frame.AppendResponse(nil, &r))
	}
	return append(frame.AppendHeader(nil, frame.Header{Type: frame.Accepted, Count: count, First: st.requests}), exceptions...)
}

// drop ends the connection of a client.
func (b *testBroker) drop(st *testStream) {
	b.mu.Lock()
	conn := st.conn
	b.mu.Unlock()
	_ = conn.Close(1001, "the broker stops")
}
