// Package websocket carries frames over a WebSocket: it implements session.Conn for both sides. The server and the public
// libraries of Go use it.
//
// A connection has no compression and takes messages of up to frame.MaxSize. The side that accepted it sends a ping every 20 s.
// Both sides close it with code 4003 when they have received nothing for 60 s. Somebody must call Read all the time: pings are
// answered, and the silence of the peer is noticed, only while a Read runs.
package websocket

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"

	"fanfare.dev/fanfare/internal/session"
	"fanfare.dev/fanfare/internal/session/frame"
)

// Heartbeat is the time between two pings, and Silence is the time without any message after which a side closes.
const (
	Heartbeat = 20 * time.Second
	Silence   = 60 * time.Second
)

const (
	bufferSize  = 72 << 10  // of a read buffer; the libraries fill frames up to 64 KiB
	smallFrame  = 4000      // the library writes it in one piece
	readStep    = 256 << 10 // bytes read before the peer counts as alive again
	closeWait   = time.Second
	maxReason   = 123 // bytes (RFC 6455, section 5.5)
	maxRefusal  = 64 << 10
	dialTimeout = 30 * time.Second
)

// A Conn is one connection. Its methods are those of session.Conn.
type Conn struct {
	ws      *websocket.Conn
	socket  *socket
	buffer  []byte // for the next Read
	usual   int    // size of a buffer that holds a frame like the last one
	heard   atomic.Int64
	started time.Time
	closing chan struct{} // is closed by the first Close, or with the connection
	once    sync.Once
	closed  chan struct{}       // is closed when the close handshake is over
	own     atomic.Pointer[End] // why this side closed
}

// An End is the error of a Read or Write on a connection that either side closed.
type End struct {
	Code   int
	Reason string
	Local  bool // this side closed it
}

func (e *End) Error() string {
	by := "the peer"
	if e.Local {
		by = "this side"
	}
	text := fmt.Sprintf("%s closed the connection with code %d", by, e.Code)
	if e.Reason != "" {
		text += ": " + e.Reason
	}
	return text
}

// A Refusal is the error of Dial if the server answered without switching to a WebSocket.
type Refusal struct {
	Status int
	Header http.Header
	Body   []byte // at most 64 KiB
}

func (e *Refusal) Error() string {
	return fmt.Sprintf("the server responded to the WebSocket handshake with status %d", e.Status)
}

// rhythm are the times of a connection.
type rhythm struct{ ping, silence time.Duration }

// Accept answers a request for a WebSocket. After an error it has written a response.
func Accept(w http.ResponseWriter, r *http.Request, subprotocol string) (*Conn, error) {
	return accept(w, r, subprotocol, rhythm{Heartbeat, Silence})
}

func accept(w http.ResponseWriter, r *http.Request, subprotocol string, times rhythm) (*Conn, error) {
	c := &Conn{}
	h := &hijacker{ResponseWriter: w}
	ws, err := websocket.Accept(h, r, &websocket.AcceptOptions{
		Subprotocols:    []string{subprotocol},
		CompressionMode: websocket.CompressionDisabled,
		OnPingReceived:  func(context.Context, []byte) bool { c.hear(); return true },
		OnPongReceived:  func(context.Context, []byte) { c.hear() },
	})
	if err != nil {
		return nil, err
	}
	c.socket = h.socket
	c.start(ws, times)
	if ws.Subprotocol() != subprotocol {
		_ = c.Close(session.CloseInvalid, "the subprotocol must be "+subprotocol) // its error is the next one
		return nil, fmt.Errorf("the connection does not have the subprotocol %s", subprotocol)
	}
	return c, nil
}

// Dial opens a connection to a URL with the scheme http, https, ws or wss. If the server refuses, the error is a *Refusal.
func Dial(ctx context.Context, url string, header http.Header, subprotocol string, client *http.Client) (*Conn, error) {
	return dial(ctx, url, header, subprotocol, client, rhythm{0, Silence})
}

func dial(ctx context.Context, url string, header http.Header, subprotocol string, client *http.Client, times rhythm) (*Conn, error) {
	if client == nil {
		client = &http.Client{Transport: &http.Transport{Proxy: http.ProxyFromEnvironment}}
	}
	if header == nil {
		header = http.Header{}
	}
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	refused := &refusals{next: client.Transport}
	if refused.next == nil {
		refused.next = http.DefaultTransport
	}
	own := *client
	own.Transport = refused
	c := &Conn{}
	ws, _, err := websocket.Dial(ctx, url, &websocket.DialOptions{ //nolint:bodyclose // the library owns the body: it is the connection
		HTTPClient:      &own,
		HTTPHeader:      header,
		Subprotocols:    []string{subprotocol},
		CompressionMode: websocket.CompressionDisabled,
		OnPingReceived:  func(context.Context, []byte) bool { c.hear(); return true },
		OnPongReceived:  func(context.Context, []byte) { c.hear() },
	})
	if err != nil {
		if refused.last != nil {
			return nil, refused.last
		}
		return nil, err
	}
	if c.socket = refused.socket; c.socket == nil {
		_ = ws.CloseNow() // it is of no use
		return nil, errors.New("the transport of the HTTP client gives no access to the connection")
	}
	c.start(ws, times)
	if ws.Subprotocol() != subprotocol {
		_ = c.Close(session.CloseInvalid, "the subprotocol must be "+subprotocol) // its error is the next one
		return nil, fmt.Errorf("the server does not support the subprotocol %s", subprotocol)
	}
	return c, nil
}

// refusals keeps the body of an answer, because the library keeps only its first 1024 bytes. It also keeps the
// connection of an upgraded request.
type refusals struct {
	next http.RoundTripper
	last *Refusal

	socket *socket // of an upgraded connection
}

func (t *refusals) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := t.next.RoundTrip(request)
	if err != nil || response.StatusCode/100 == 3 {
		return response, err
	}
	if response.StatusCode == http.StatusSwitchingProtocols {
		if conn, ok := response.Body.(io.ReadWriteCloser); ok {
			t.socket = &socket{ReadWriteCloser: conn, masked: true}
			response.Body = t.socket
		}
		return response, nil
	}
	body, _ := io.ReadAll(io.LimitReader(response.Body, maxRefusal)) // use what was read
	_ = response.Body.Close()                                        // it was only read
	t.last = &Refusal{response.StatusCode, response.Header, body}
	response.Body = io.NopCloser(bytes.NewReader(body))
	return response, nil
}

func (c *Conn) start(ws *websocket.Conn, times rhythm) {
	c.ws, c.started = ws, time.Now()
	c.closing, c.closed = make(chan struct{}), make(chan struct{})
	ws.SetReadLimit(frame.MaxSize)
	go c.watch(times)
}

// hear notes that the peer is alive.
func (c *Conn) hear() { c.heard.Store(int64(time.Since(c.started))) }

// watch sends pings and closes a connection whose peer is silent.
func (c *Conn) watch(times rhythm) {
	every := times.ping
	if every == 0 {
		every = times.silence / 6
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-c.closing:
			return
		case <-tick.C:
		}
		if time.Since(c.started)-time.Duration(c.heard.Load()) >= times.silence {
			c.end(session.CloseSlow, "nothing has been received for "+times.silence.String())
			return
		}
		if times.ping > 0 {
			go c.ping(times)
		}
	}
}

func (c *Conn) ping(times rhythm) {
	ctx, cancel := context.WithTimeout(context.Background(), times.ping)
	defer cancel()
	_ = c.ws.Ping(ctx) // the silence that follows a failure closes the connection
}

// Read returns the next frame, which belongs to the caller. Its context closes the connection when it ends.
func (c *Conn) Read(ctx context.Context) ([]byte, error) {
	kind, message, err := c.ws.Reader(ctx)
	if err != nil {
		return nil, c.failed(ctx, err)
	}
	c.hear()
	if kind != websocket.MessageBinary {
		c.end(session.CloseInvalid, "a frame must be a binary message")
		return nil, c.own.Load()
	}
	b := c.buffer[:0]
	if cap(b) == 0 {
		b = frame.Buffer(max(c.usual, bufferSize))
	}
	for {
		if len(b) == cap(b) {
			b = frame.Grow(b, min(3*(cap(b)-8<<10), frame.MaxSize+1-len(b))) // the next size but one; it has space to read the end
		}
		n, err := message.Read(b[len(b):min(cap(b), len(b)+readStep)])
		b = b[:len(b)+n]
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, c.failed(ctx, err)
		}
		c.hear()
	}
	c.usual = max(len(b)+1, c.usual-c.usual/8) // small frames come between large ones
	if len(b) < cap(b)/4 {                     // a copy is cheaper than the rest of the buffer
		own := bytes.Clone(b)
		if c.buffer = b[:0]; cap(b) > 4*max(c.usual, bufferSize) {
			c.buffer = nil
			frame.Recycle(b)
		}
		return own, nil
	}
	c.buffer = nil
	return b, nil
}

// Write sends a frame. It does not keep the frame after it has returned.
func (c *Conn) Write(ctx context.Context, b []byte) error {
	var err error
	if len(b) > smallFrame {
		err = c.send(ctx, b)
	} else {
		err = c.ws.Write(ctx, websocket.MessageBinary, b)
	}
	if err != nil {
		return c.failed(ctx, err)
	}
	return nil
}

// failed names the reason of a failed call.
func (c *Conn) failed(ctx context.Context, err error) error {
	if end := c.own.Load(); end != nil {
		return end
	}
	if peer, ok := errors.AsType[websocket.CloseError](err); ok {
		c.once.Do(func() { close(c.closing) })
		return &End{Code: int(peer.Code), Reason: peer.Reason}
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

// Close closes the connection with a code and a reason. It waits at most a second for the peer; the close handshake then
// continues without the caller. A second Close does nothing.
func (c *Conn) Close(code int, reason string) error {
	c.end(code, reason)
	select {
	case <-c.closed:
	case <-time.After(closeWait):
	}
	return nil
}

func (c *Conn) end(code int, reason string) {
	if len(reason) > maxReason {
		reason = reason[:maxReason]
	}
	if !c.own.CompareAndSwap(nil, &End{code, reason, true}) {
		return
	}
	c.once.Do(func() { close(c.closing) })
	go func() {
		defer close(c.closed)
		_ = c.ws.Close(websocket.StatusCode(code), reason) // the peer may be gone
		_ = c.ws.CloseNow()                                // else a failed handshake could leave the socket open
	}()
}
