package session

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/client/internal/stream"
	"fanfare.dev/fanfare/internal/session/frame"
	"fanfare.dev/fanfare/internal/session/websocket"
)

const (
	firstWait    = 100 * time.Millisecond // before a new connection; doubled for each attempt
	maxWait      = 10 * time.Second
	firstTries   = 4
	confirmEvery = 500 * time.Millisecond // processed responses are confirmed at least this often
	confirmCount = 1000                   // or after this many
	confirmBytes = 1 << 20
)

func decode[T any](text []byte) (T, error) {
	var v T
	err := json.Unmarshal(text, &v)
	return v, err
}

// dial connects. from is the number of the first response to receive, 0: the first one that was not confirmed. If the client was
// connected before, the broker sends again what it has not told about refused and repeated requests.
func (cl *Client) dial(ctx context.Context, from uint64, again bool) (*websocket.Conn, *frame.ClientWelcome, error) {
	query := url.Values{}
	if from > 0 {
		query.Set("from", strconv.FormatUint(from, 10))
	}
	if again {
		query.Set("accepted", strconv.FormatUint(cl.told.Load(), 10))
	}
	var welcome frame.ClientWelcome
	conn, err := stream.Dial(ctx, cl.session.api, cl.session.path()+"/clients/"+url.PathEscape(cl.name)+"/stream", query, frame.ClientProtocol, &welcome)
	if err != nil {
		return nil, nil, err
	}
	if welcome.From == 0 { // of a session without responses
		welcome.From = max(1, from)
	}
	return conn, &welcome, nil
}

// dialFirst connects, and tries again a few times if the server cannot be reached.
func (cl *Client) dialFirst(ctx context.Context) (conn *websocket.Conn, welcome *frame.ClientWelcome, err error) {
	wait := stream.Backoff{First: firstWait, Max: maxWait}
	for range firstTries {
		conn, welcome, err = cl.dial(ctx, cl.from, false)
		if err == nil || stream.Permanent(err) || ctx.Err() != nil || !wait.Wait(ctx) {
			break
		}
	}
	return conn, welcome, err
}

// run uses connections until the client is closed or an error is permanent.
func (cl *Client) run(ctx context.Context, conn *websocket.Conn) {
	defer close(cl.stopped)
	defer cl.cancel()
	wait := stream.Backoff{First: firstWait, Max: maxWait}
	for {
		err := cl.serve(ctx, conn)
		for {
			cl.mu.Lock()
			closing := cl.closing
			cl.mu.Unlock()
			if closing || ctx.Err() != nil {
				cl.fail(errClosed)
				return
			}
			if stream.Permanent(err) {
				cl.fail(err)
				return
			}
			if !wait.Wait(ctx) {
				continue
			}
			var welcome *frame.ClientWelcome
			conn, welcome, err = cl.dial(ctx, cl.in.next(), true)
			if err != nil {
				continue
			}
			if err = cl.resumeAt(welcome); err == nil {
				wait.Reset()
				break
			}
			_ = conn.Close(1000, "") // nothing can be sent on it
		}
	}
}

// resumeAt checks that the broker continues where the last connection ended, and continues there.
func (cl *Client) resumeAt(welcome *frame.ClientWelcome) error {
	if next := cl.in.next(); welcome.From > next {
		return &fanfare.Error{Code: fanfare.Conflict, Message: fmt.Sprintf("the broker no longer has the responses before number %d, but the next one to read is number %d", welcome.From, next),
			Hint: "another process has read the responses of this client: use a different client name in each process"}
	}
	cl.mu.Lock()
	defer cl.mu.Unlock()
	if welcome.Requests < cl.kept || welcome.Requests > cl.last {
		return &fanfare.Error{Code: fanfare.Conflict, Message: fmt.Sprintf("the broker has %d requests from client %s, but this process has sent %[4]d, of which %[3]d are confirmed", welcome.Requests, cl.name, cl.kept, cl.last),
			Hint: "another process has sent requests as this client: use a different client name in each process"}
	}
	cl.resume(welcome)
	return nil
}

// resume sets the state of a new connection. All requests that are not kept are sent again.
func (cl *Client) resume(welcome *frame.ClientWelcome) {
	if cl.open != nil {
		cl.batches = append(cl.batches, cl.open)
		cl.open = nil
	}
	cl.keep(welcome.Requests)
	cl.unsent = 0
	cl.window = welcome.Window
	for _, b := range cl.barriers {
		b.sent = false
	}
	if welcome.Ended {
		cl.end(welcome.Accepted)
	}
	if cl.ending != nil {
		cl.ending.sent = false
	}
	cl.confirmed = min(cl.confirmed, welcome.From-1)
	cl.change()
}

// end notes that the broker takes no further request.
func (cl *Client) end(accepted uint64) {
	cl.ended, cl.accepted = true, accepted
	if e := cl.ending; e != nil {
		cl.ending = nil
		e.err = checkCount(e.expected, accepted)
		close(e.done)
	}
	cl.change()
}

// serve uses one connection until it ends, and returns why.
func (cl *Client) serve(ctx context.Context, conn *websocket.Conn) error {
	ctx, cancel := context.WithCancel(ctx)
	cl.setConnected(true)
	defer cl.setConnected(false)
	written := make(chan struct{})
	go func() {
		defer close(written)
		cl.write(ctx, conn)
		cancel() // a broker that does not answer the end of the connection is not waited for
	}()
	err := cl.read(ctx, conn)
	cancel() // a Write that waits for the peer ends
	<-written
	go func() { _ = conn.Close(1000, "") }() // the peer may be gone
	return err
}

func (cl *Client) setConnected(is bool) {
	cl.mu.Lock()
	defer cl.mu.Unlock()
	cl.connected = is
}

// write sends what there is to send. An error ends the connection, and is the error of read.
func (cl *Client) write(ctx context.Context, conn *websocket.Conn) {
	tick := time.NewTicker(confirmEvery)
	defer tick.Stop()
	for {
		cl.mu.Lock()
		cl.writing = nil
		data := cl.pick()
		closing := data == nil && cl.closing
		cl.idle = data == nil
		cl.mu.Unlock()
		switch {
		case data != nil:
			if conn.Write(ctx, data) != nil {
				_ = conn.Close(1001, "a write failed") // ends read, which reports the error
				return
			}
		case closing:
			cl.finish(ctx, conn)
			return
		default:
			select {
			case <-cl.wake:
			case <-tick.C:
				cl.mu.Lock()
				cl.confirmNow = true
				cl.mu.Unlock()
			case <-ctx.Done():
				return
			}
		}
	}
}

// finish ends the stream after everything was sent.
func (cl *Client) finish(ctx context.Context, conn *websocket.Conn) {
	cl.mu.Lock()
	purge := cl.purge
	cl.mu.Unlock()
	if !purge {
		_ = conn.Close(1000, "") // the peer may be gone
		return
	}
	if conn.Write(ctx, frame.Token(frame.Close, 1, 0)) == nil {
		<-ctx.Done() // the broker closes the connection
	}
}

// pick returns the next frame to send, or nil.
func (cl *Client) pick() []byte {
	if n := cl.processed.Load(); n > cl.confirmed && (cl.confirmNow || n-cl.confirmed >= confirmCount || cl.pending >= confirmBytes) {
		cl.confirmed, cl.pending, cl.confirmNow = n, 0, false
		return frame.Token(frame.Received, 0, n)
	}
	cl.confirmNow = false
	sent := cl.sent()
	for _, b := range cl.barriers {
		if !b.sent && b.after <= sent {
			b.sent = true
			return frame.Token(frame.Flush, 0, b.token)
		}
	}
	if cl.unsent == len(cl.batches) && cl.open != nil {
		cl.batches = append(cl.batches, cl.open)
		cl.open = nil
	}
	if cl.unsent < len(cl.batches) {
		b := cl.batches[cl.unsent]
		if b.first > cl.window { // only on a new connection: Send does not exceed the window
			return nil
		}
		if b.last() > cl.window {
			head, tail := b.split(cl.window)
			cl.batches = append(cl.batches[:cl.unsent], append([]*batch{head, tail}, cl.batches[cl.unsent+1:]...)...)
			b = head
		}
		cl.unsent++
		cl.writing = b
		return b.seal()
	}
	if e := cl.ending; e != nil && !e.sent {
		e.sent = true
		return frame.Token(frame.End, 0, e.expected)
	}
	return nil
}

// sent returns the number of the last request that was sent on this connection.
func (cl *Client) sent() uint64 {
	switch {
	case cl.unsent < len(cl.batches):
		return cl.batches[cl.unsent].first - 1
	case cl.open != nil:
		return cl.open.first - 1
	}
	return cl.last
}

// read handles the frames of a connection until it ends.
func (cl *Client) read(ctx context.Context, conn *websocket.Conn) error {
	var last *fanfare.Error // the last problem
	for {
		data, err := conn.Read(ctx)
		if err != nil {
			return stream.Closed(err, last)
		}
		h, payload, err := frame.Parse(data)
		if err != nil {
			return stream.Break(conn, err)
		}
		switch h.Type {
		case frame.Responses:
			err = cl.in.add(h, payload)
		case frame.Accepted:
			err = cl.takeAccepted(h, payload)
		case frame.Window:
			cl.mu.Lock()
			cl.window = max(cl.window, h.First)
			cl.change()
			cl.rouse()
			cl.mu.Unlock()
		case frame.Flushed:
			cl.flushed(h.First)
		case frame.Ended:
			cl.mu.Lock()
			cl.end(h.First)
			cl.mu.Unlock()
		case frame.Done:
			cl.in.finish(h.First)
		case frame.Closed:
			last = stream.Problem(payload)
		case frame.Problem:
			last = stream.Problem(payload)
			if cl.refuseEnd(last) {
				last = nil
			}
		default: // of a newer server
		}
		if err != nil {
			return stream.Break(conn, err)
		}
	}
}

var errNumber = errors.New("a frame confirms requests that were not sent")

func (cl *Client) takeAccepted(h frame.Header, payload []byte) error {
	var e frame.Exception
	for range h.Count {
		var err error
		if payload, err = frame.NextException(payload, &e); err != nil {
			return err
		}
		cl.except(&e)
	}
	cl.told.Store(h.First)
	cl.mu.Lock()
	defer cl.mu.Unlock()
	if h.First > cl.last { // more than this connection has sent is possible: requests of the last one are kept late
		return errNumber
	}
	cl.keep(h.First)
	return nil
}

func (cl *Client) flushed(token uint64) {
	cl.mu.Lock()
	defer cl.mu.Unlock()
	for i, b := range cl.barriers {
		if b.token == token {
			close(b.done)
			cl.barriers = append(cl.barriers[:i], cl.barriers[i+1:]...)
			return
		}
	}
}

// refuseEnd reports whether a problem belongs to an End that waits.
func (cl *Client) refuseEnd(err *fanfare.Error) bool {
	cl.mu.Lock()
	defer cl.mu.Unlock()
	e := cl.ending
	if e == nil || !e.sent {
		return false
	}
	cl.ending = nil
	e.err = err
	close(e.done)
	return true
}
