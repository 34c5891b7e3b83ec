package websocket

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"fanfare.dev/fanfare/internal/session"
	"fanfare.dev/fanfare/internal/session/frame"
)

var _ session.Conn = (*Conn)(nil)

const protocol = "test.v1"

var slow = rhythm{Heartbeat, Silence}

// connect returns both sides of a connection.
func connect(t *testing.T, server, client rhythm) (accepted, dialled *Conn) {
	t.Helper()
	conns := make(chan *Conn, 1)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, err := accept(w, r, protocol, server)
		if err != nil {
			t.Errorf("accept: %v", err)
		}
		conns <- c
	}))
	t.Cleanup(s.Close)
	dialled, err := dial(t.Context(), s.URL, nil, protocol, nil, client)
	if err != nil {
		t.Fatal(err)
	}
	accepted = <-conns
	t.Cleanup(func() {
		go accepted.Close(session.CloseNormal, "")
		_ = dialled.Close(session.CloseNormal, "")
	})
	return accepted, dialled
}

func TestFramesOfAllSizesArriveUnchangedInBothDirections(t *testing.T) {
	a, b := connect(t, slow, slow)
	for _, pair := range [][2]*Conn{{a, b}, {b, a}} {
		var kept [][]byte
		sizes := []int{0, 1, 16, 125, 126, smallFrame, smallFrame + 1, 4095, 4096, 65_535, 65_536, writeStep, writeStep + 1, 2*writeStep + 3, bufferSize - 1, bufferSize, bufferSize + 1, 300_000, frame.MaxSize - 1, frame.MaxSize}
		sent := make(chan error, 1)
		go func() {
			for i, size := range sizes {
				if err := pair[0].Write(t.Context(), content(i, size)); err != nil {
					sent <- err
					return
				}
			}
			sent <- nil
		}()
		for range sizes {
			got, err := pair[1].Read(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			kept = append(kept, got)
		}
		if err := <-sent; err != nil {
			t.Fatal(err)
		}
		for i, size := range sizes { // after all reads: a frame belongs to the caller
			if !bytes.Equal(kept[i], content(i, size)) {
				t.Errorf("a frame of %d bytes has changed", size)
			}
		}
	}
}

// content is different at each position, so that a wrong mask, order or length is found.
func content(seed, size int) []byte {
	b := make([]byte, size)
	_, _ = rand.NewChaCha8([32]byte{byte(seed), byte(size)}).Read(b) // it never fails
	return b
}

func TestAFrameAboveTheLimitEndsTheConnection(t *testing.T) {
	a, b := connect(t, slow, slow)
	go func() { _ = b.Write(t.Context(), make([]byte, frame.MaxSize+1)) }() // it fails when the peer closes
	if _, err := a.Read(t.Context()); err == nil {
		t.Fatal("a frame above the limit was accepted")
	}
}

func TestCloseTellsThePeerTheCodeAndTheReason(t *testing.T) {
	a, b := connect(t, slow, slow)
	read := make(chan error, 1)
	go func() {
		_, err := b.Read(t.Context())
		read <- err
	}()
	own := make(chan error, 1)
	go func() {
		_, err := a.Read(t.Context())
		own <- err
	}()
	if err := a.Close(session.CloseReplaced, strings.Repeat("x", 200)); err != nil {
		t.Fatal(err)
	}
	end, ok := errors.AsType[*End](<-read)
	if !ok || end.Code != session.CloseReplaced || end.Reason != strings.Repeat("x", maxReason) || end.Local {
		t.Errorf("the peer read %v", end)
	}
	if end, ok := errors.AsType[*End](<-own); !ok || !end.Local || end.Code != session.CloseReplaced {
		t.Errorf("the closing side read %v", end)
	}
	if err := a.Write(t.Context(), []byte{1}); err == nil {
		t.Error("a closed connection accepts a frame")
	}
}

func TestASilentPeerIsClosed(t *testing.T) {
	quick := rhythm{0, 50 * time.Millisecond}
	a, b := connect(t, slow, quick)
	silent := make(chan error, 1)
	go func() {
		_, err := a.Read(t.Context())
		silent <- err
	}()
	_, err := b.Read(t.Context())
	if end, ok := errors.AsType[*End](err); !ok || end.Code != session.CloseSlow || !end.Local {
		t.Errorf("the waiting side got %v", err)
	}
	if end, ok := errors.AsType[*End](<-silent); !ok || end.Code != session.CloseSlow || end.Local {
		t.Errorf("the silent side got %v", end)
	}
}

func TestPingsKeepAnIdleConnectionOpen(t *testing.T) {
	a, b := connect(t, rhythm{20 * time.Millisecond, time.Minute}, rhythm{0, time.Minute})
	for _, c := range []*Conn{a, b} {
		go func() { _, _ = c.Read(t.Context()) }() // the end of the test ends it
	}
	before := []int64{a.heard.Load(), b.heard.Load()}
	for deadline := time.Now().Add(time.Minute); ; {
		if a.heard.Load() > before[0] && b.heard.Load() > before[1] {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("no ping and pong within a minute")
		}
		<-time.After(time.Millisecond)
	}
}

func TestARefusalHasTheWholeAnswer(t *testing.T) {
	body := strings.Repeat("refused ", 1000)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer k" {
			t.Error("the header is missing")
		}
		w.Header().Set("Retry-After", "7")
		http.Error(w, body, http.StatusServiceUnavailable)
	}))
	defer s.Close()
	_, err := Dial(t.Context(), s.URL, http.Header{"Authorization": {"Bearer k"}}, protocol, s.Client())
	refusal, ok := errors.AsType[*Refusal](err)
	if !ok || refusal.Status != http.StatusServiceUnavailable || strings.TrimSpace(string(refusal.Body)) != strings.TrimSpace(body) || refusal.Header.Get("Retry-After") != "7" {
		t.Errorf("got %v", err)
	}
}

func TestBothSidesInsistOnTheSubprotocol(t *testing.T) {
	refused := make(chan error, 1)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, err := Accept(w, r, "other.v1")
		if c != nil {
			_ = c.Close(session.CloseNormal, "")
		}
		refused <- err
	}))
	defer s.Close()
	if _, err := Dial(t.Context(), s.URL, nil, protocol, nil); err == nil {
		t.Error("Dial accepted another subprotocol")
	}
	if err := <-refused; err == nil {
		t.Error("Accept accepted another subprotocol")
	}
}

func TestTheContextEndsARead(t *testing.T) {
	a, _ := connect(t, slow, slow)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := a.Read(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func BenchmarkFramesOf64KiB(b *testing.B) {
	var server *Conn
	ready := make(chan bool)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		server, _ = Accept(w, r, protocol)
		ready <- true
	}))
	defer s.Close()
	c, err := Dial(b.Context(), s.URL, nil, protocol, nil)
	if err != nil {
		b.Fatal(err)
	}
	<-ready
	go func() {
		for {
			got, err := server.Read(context.Background())
			if err != nil {
				return
			}
			frame.Recycle(got)
		}
	}()
	b.SetBytes(64 << 10)
	b.ReportAllocs()
	data := make([]byte, 64<<10)
	for b.Loop() {
		if err := c.Write(b.Context(), data); err != nil {
			b.Fatal(err)
		}
	}
}

// pump sends frames in both directions at the same time and checks them.
func pump(t *testing.T, a, b *Conn, count int) {
	t.Helper()
	failed := make(chan error, 4)
	for _, pair := range [][2]*Conn{{a, b}, {b, a}} {
		go func() {
			for n := range count {
				if err := pair[0].Write(t.Context(), content(n, n*7919%200_000)); err != nil {
					failed <- err
					return
				}
			}
			failed <- nil
		}()
		go func() {
			for n := range count {
				got, err := pair[1].Read(t.Context())
				if err != nil {
					failed <- err
					return
				}
				if !bytes.Equal(got, content(n, n*7919%200_000)) {
					failed <- fmt.Errorf("frame %d of %d bytes has changed", n, len(got))
					return
				}
				frame.Recycle(got)
			}
			failed <- nil
		}()
	}
	for range 4 {
		if err := <-failed; err != nil {
			t.Fatal(err)
		}
	}
}

func TestPingsDoNotMixWithLargeFrames(t *testing.T) {
	a, b := connect(t, slow, slow)
	var pings atomic.Int64
	ctx, cancel := context.WithCancel(t.Context())
	var pinger sync.WaitGroup
	pinger.Go(func() { // of one side only, as in the server: two readers that wait to write their pongs would stop each other
		for a.ws.Ping(ctx) == nil { // pump finds the reason of an error
			pings.Add(1)
		}
	})
	for pump(t, a, b, 40); pings.Load() < 5; {
		pump(t, a, b, 40)
	}
	cancel()
	pinger.Wait()
}

func TestLargeFramesArriveOverTLS(t *testing.T) {
	conns := make(chan *Conn, 1)
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, err := Accept(w, r, protocol)
		if err != nil {
			t.Errorf("accept: %v", err)
		}
		conns <- c
	}))
	s.StartTLS()
	defer s.Close()
	dialled, err := Dial(t.Context(), s.URL, nil, protocol, s.Client())
	if err != nil {
		t.Fatal(err)
	}
	accepted := <-conns
	pump(t, accepted, dialled, 40)
	go accepted.Close(session.CloseNormal, "")
	_ = dialled.Close(session.CloseNormal, "")
}

func TestNoLargeFrameFollowsTheClose(t *testing.T) {
	a, b := connect(t, slow, slow)
	read := make(chan error, 1)
	go func() {
		_, err := b.Read(t.Context())
		read <- err
	}()
	go func() { _, _ = a.Read(t.Context()) }() // the handshake needs it
	_ = a.Close(session.CloseNormal, "")
	if end, ok := errors.AsType[*End](a.Write(t.Context(), make([]byte, 100_000))); !ok || !end.Local {
		t.Error("a closed connection accepts a large frame")
	}
	if end, ok := errors.AsType[*End](<-read); !ok || end.Code != session.CloseNormal {
		t.Error("the peer has not read the close")
	}
}

func TestACancelledWriteOfALargeFrameEnds(t *testing.T) {
	for side := range 2 {
		a, b := connect(t, slow, slow)
		c := []*Conn{a, b}[side]
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() {
			for {
				if err := c.Write(ctx, make([]byte, frame.MaxSize)); err != nil { // nobody reads
					done <- err
					return
				}
			}
		}()
		<-time.After(20 * time.Millisecond)
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("the write ended with %v", err)
		}
	}
}
