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

// A Endpoint defines how a bulk endpoint processes its lines.
type Endpoint[T any] struct {
	Decode       func(line []byte, item *T) error
	MaxLineBytes int
	MaxLines     int // that are kept together
	Status       int // of the answer
	Quiet        bool

	// keep begins to keep items, durably. What it gives on over is its error:
	// then none was kept. The outcomes are asked for after that.
	Store func(ctx context.Context, items []T) (over <-chan error, of ResultFunc)
	// ahead is how many chunks may be begun while one is not over yet.
	ChunksAhead int
	// refused counts a line that was refused.
	Rejected func(wire.LineError)
	// summary is the answer in quiet mode.
	Summary func() any
}

// An ResultFunc counts what came of item i and returns its error, or appends its
// answer to dst where there shall be one. It is asked for each item, in order.
type ResultFunc func(dst []byte, i int) ([]byte, error)

// Done is the end of what was not begun, but done.
func Done(err error) <-chan error {
	told := make(chan error, 1)
	told <- err
	return told
}

// A keeping is a chunk whose items are being kept.
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
	fail  func(error) // answers with an error, where nothing was answered yet
	buf   []byte
	lines int64 // answered so far
}

// storeAll keeps the chunks of lines and answers them, in order: while some are
// under way it begins others, and it does not hold an answer back for the chunk
// that comes next. It is false where it had to stop before the end.
func (o *resultWriter[T]) storeAll(ctx context.Context, lines *stream[T]) bool {
	var underWay []pendingChunk[T] // the oldest first
	defer func() {
		for _, k := range underWay { // until it is over its items are in use
			<-k.done //nolint:errcheck // what came of it is not told any more
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
				return false // the client reads no more; what it was not told is put again
			}
			lines.recycle(k.chunk)
		}
	}
	return true
}

// begin begins to keep the items of a chunk.
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

// abort ends the answer where nothing more can be kept: from line number on
// nothing was.
func (o *resultWriter[T]) abort(number int, err error) {
	if e, ok := errors.AsType[*fanfare.Error](err); ok {
		at := *e
		at.Line = number
		if number > 1 {
			at.Hint = "what stands before this line is stored; send the rest again"
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
	_ = o.flush() // the answer ends here, whether the client reads it or not
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

// BodyLimit are the bulk bodies that a server reads at the same time.
type BodyLimit struct {
	Stopping <-chan struct{} // closed when the server stops
	Slots    chan struct{}   // one for each body
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
		return &fanfare.Error{Code: fanfare.Invalid, Message: "a body in Content-Encoding " + enc + " cannot be read", Hint: "send it plain"}
	}
	select {
	case <-b.Stopping:
		return &fanfare.Error{Code: fanfare.Unavailable, Message: "the server is stopping", Hint: "nothing was kept; send it again in a moment"}
	default:
	}
	select {
	case b.Slots <- struct{}{}:
		defer func() { <-b.Slots }()
	default:
		return &fanfare.Error{Code: fanfare.Unavailable, Message: "too many bulk bodies are being read", Hint: "send this one when another is done"}
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
