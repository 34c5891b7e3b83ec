package ndjson

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/httpapi/httpio"
	"fanfare.dev/fanfare/internal/httpapi/wire"
)

// An Endpoint defines how a bulk endpoint processes its lines.
type Endpoint[T any] struct {
	Decode       func(line []byte, item *T) error
	MaxLineBytes int
	MaxLines     int // in one call of Store
	Status       int // of the response
	Quiet        bool

	// Store starts to store items durably. It sends one value on done: nil, or an error
	// if no item was stored. result is called only after that.
	Store func(ctx context.Context, items []T) (done <-chan error, result ResultFunc)
	// ChunksAhead is the number of further chunks that may start while one is being stored.
	ChunksAhead int
	// Rejected counts a rejected line.
	Rejected func(wire.LineError)
	// Summary returns the response in quiet mode.
	Summary func() any
}

// A ResultFunc counts the result of item i and returns its error, or appends its response
// to dst. It is called for each item in order.
type ResultFunc func(dst []byte, i int) ([]byte, error)

// Done returns a channel with the result of work that has already ended.
func Done(err error) <-chan error {
	done := make(chan error, 1)
	done <- err
	return done
}

// A pendingChunk is a chunk whose items are being stored.
type pendingChunk[T any] struct {
	*chunk[T]
	done   <-chan error
	result ResultFunc
}

// resultWriter writes the results of the lines in order.
type resultWriter[T any] struct {
	Endpoint[T]
	x     response
	rc    *http.ResponseController
	fail  func(error) // writes an error if the response has not begun
	buf   []byte
	lines int64 // with a result so far
}

// storeAll stores the chunks and writes their results in order. It starts further chunks
// while earlier ones are being stored, and writes each result without waiting for the next
// chunk. It returns false if it had to stop before the end.
func (o *resultWriter[T]) storeAll(ctx context.Context, lines *stream[T]) bool {
	var underWay []pendingChunk[T] // the oldest first
	defer func() {
		for _, k := range underWay { // their items are in use until then
			<-k.done //nolint:errcheck // the response has ended
		}
	}()
	for open := true; open || len(underWay) > 0; {
		next, oldest := lines.order, (<-chan error)(nil)
		if !open || len(underWay) > o.ChunksAhead {
			next = nil
		}
		if len(underWay) > 0 {
			oldest = underWay[0].done
		}
		select {
		case c, more := <-next:
			if open = more; more {
				underWay = append(underWay, o.begin(ctx, c))
			}
		case err := <-oldest:
			k := underWay[0]
			underWay = underWay[1:]
			if err != nil {
				o.abort(k.first, err)
				return false
			}
			if err := o.writeChunk(k); err != nil {
				return false // the client has disconnected and sends the rest again
			}
			lines.recycle(k.chunk)
		}
	}
	return true
}

// begin starts to store the items of a chunk.
func (o *resultWriter[T]) begin(ctx context.Context, c *chunk[T]) pendingChunk[T] {
	<-c.ready
	k := pendingChunk[T]{chunk: c, done: Done(nil)}
	if len(c.items) > 0 {
		k.done, k.result = o.Store(ctx, c.items)
	}
	return k
}

// writeChunk writes the results of the lines of c.
func (o *resultWriter[T]) writeChunk(c pendingChunk[T]) error {
	bad := c.bad
	for i, number := range c.lineNumbers {
		for len(bad) > 0 && bad[0].number < number {
			o.reject(bad[0].number, bad[0].err)
			bad = bad[1:]
		}
		var err error
		if o.buf, err = c.result(o.buf, i); err != nil {
			o.reject(number, err)
		} else if !o.Quiet {
			o.buf = append(o.buf, '\n')
		}
		o.lines++
	}
	for _, b := range bad {
		o.reject(b.number, b.err)
	}
	return o.flush()
}

func (o *resultWriter[T]) reject(number int, err error) {
	e := wire.LineError{Line: number, Error: wire.MemberOf(err)}
	o.Rejected(e)
	if o.Quiet {
		return
	}
	line, _ := json.Marshal(e) // plain fields: cannot fail
	o.buf = append(append(o.buf, line...), '\n')
}

// flush sends the buffered results.
func (o *resultWriter[T]) flush() error {
	if o.Quiet || len(o.buf) == 0 {
		return nil
	}
	o.writeHeader(httpio.NDJSON)
	o.rc.SetWriteDeadline(time.Now().Add(bulkIdle))
	_, err := o.x.Write(o.buf)
	o.buf = o.buf[:0]
	if err == nil {
		err = o.rc.Flush()
	}
	if errors.Is(err, http.ErrNotSupported) {
		return nil
	}
	return err
}

func (o *resultWriter[T]) writeHeader(contentType string) {
	if !o.x.Started() {
		o.x.Header().Set("Content-Type", contentType)
		o.x.WriteHeader(o.Status)
	}
}

// abort ends the response after an error: no line from number on was stored.
func (o *resultWriter[T]) abort(number int, err error) {
	if e, ok := errors.AsType[*fanfare.Error](err); ok {
		at := *e
		at.Line = number
		if number > 1 {
			at.Hint = "the lines before this one are stored; send the rest again"
		}
		err = &at
	}
	if o.Quiet || !o.x.Started() {
		o.rc.SetWriteDeadline(time.Now().Add(bulkIdle))
		o.fail(err)
		o.rc.Flush() // before the rest of the body is read
		return
	}
	o.reject(number, err)
	_ = o.flush() // the response ends here in any case
}

// finish ends a complete response.
func (o *resultWriter[T]) finish() error {
	o.rc.SetWriteDeadline(time.Now().Add(bulkIdle))
	if o.Quiet {
		return httpio.WriteJSON(o.x, o.Status, "application/json", o.Summary())
	}
	o.writeHeader(httpio.NDJSON)
	return o.flush()
}

// BodyLimit limits the bulk bodies that are read at the same time.
type BodyLimit struct {
	Stopping <-chan struct{} // closed when the server stops
	Slots    chan struct{}   // one slot for each body
}

// A response is an http.ResponseWriter that knows whether the response has begun.
type response interface {
	http.ResponseWriter
	Started() bool
}

// Serve reads the body of r line by line and answers each line, or once at the end in quiet
// mode.
//
// It stores the complete lines that have arrived even if the client disconnects, and
// reports an error at the line at which it had to stop. Chunks are stored in order, so
// that the later of two lines for the same object wins.
func Serve[T any](b *BodyLimit, x response, r *http.Request, w Endpoint[T], fail func(error)) error {
	if r.ContentLength > maxBulkBytes {
		return httpio.TooLargeBody(maxBulkBytes)
	}
	if enc := r.Header.Get("Content-Encoding"); enc != "" && enc != "identity" {
		return &fanfare.Error{Code: fanfare.Invalid, Message: "Content-Encoding " + enc + " is not supported", Hint: "send the body without Content-Encoding"}
	}
	select {
	case <-b.Stopping:
		return &fanfare.Error{Code: fanfare.Unavailable, Message: "the server is stopping", Hint: "nothing was stored; send the request again shortly"}
	default:
	}
	select {
	case b.Slots <- struct{}{}:
		defer func() { <-b.Slots }()
	default:
		return &fanfare.Error{Code: fanfare.Unavailable, Message: "too many bulk requests are running", Hint: "send the request again when another one has finished"}
	}
	rc := http.NewResponseController(x)
	if err := rc.EnableFullDuplex(); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	lines := &stream[T]{decode: w.Decode, maxLineBytes: w.MaxLineBytes, maxLines: w.MaxLines, body: r.Body, rc: rc, stop: b.Stopping}
	lines.start()
	defer lines.close()

	ctx := context.WithoutCancel(r.Context())
	out := &resultWriter[T]{Endpoint: w, x: x, rc: rc, fail: fail}
	if !out.storeAll(ctx, lines) {
		return nil
	}
	if b := lines.broken; b != nil {
		out.reject(b.number, b.err)
	}
	return out.finish()
}
