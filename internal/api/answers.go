package api

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/api/wire"
)

// A lineWork is what a bulk endpoint does with its lines.
type lineWork[T any] struct {
	decode       func(line []byte, item *T) error
	maxLineBytes int
	maxLines     int // that are kept together
	status       int // of the answer
	quiet        bool

	// keep keeps items, durably. Its error means that none was kept.
	keep func(ctx context.Context, items []T) error
	// outcome counts what came of item i of the last keep and returns its
	// error, or appends its answer to dst where there shall be one.
	outcome func(dst []byte, i int) ([]byte, error)
	// refused counts a line that was refused.
	refused func(wire.LineError)
	// summary is the answer in quiet mode.
	summary func() any
}

// run reads the body of r line by line and answers each line, or in the end.
//
// It keeps what has arrived whole even where the client is gone, and says at
// the line where it had to stop what was the matter. Chunks are kept one after
// the other, so that of two lines for the same thing the later one wins.
func run[T any](a *API, x *exchange, r *http.Request, w lineWork[T]) error {
	if r.ContentLength > maxBulkBytes {
		return tooLargeBody(maxBulkBytes)
	}
	if enc := r.Header.Get("Content-Encoding"); enc != "" && enc != "identity" {
		return &fanfare.Error{Code: fanfare.Invalid, Message: "a body in Content-Encoding " + enc + " cannot be read", Hint: "send it plain"}
	}
	select {
	case a.bulk <- struct{}{}:
		defer func() { <-a.bulk }()
	default:
		return &fanfare.Error{Code: fanfare.Unavailable, Message: "too many bulk bodies are being read", Hint: "send this one when another is done"}
	}
	rc := http.NewResponseController(x)
	if err := rc.EnableFullDuplex(); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	lines := &stream[T]{decode: w.decode, maxLineBytes: w.maxLineBytes, maxLines: w.maxLines, body: r.Body, rc: rc, stop: a.stopping}
	lines.start()
	defer lines.close()

	ctx := context.WithoutCancel(r.Context())
	out := &answers[T]{lineWork: w, x: x, rc: rc, request: x.id}
	for c := range lines.order {
		<-c.ready
		if len(c.items) > 0 {
			if err := w.keep(ctx, c.items); err != nil {
				if err := out.abort(c.first, err); err != nil {
					a.fail(x, err)
					rc.Flush() // before the rest of the body is read
				}
				return nil
			}
		}
		if err := out.chunk(c); err != nil {
			return nil // the client reads no more; what it was not told is put again
		}
		lines.recycle(c)
	}
	if b := lines.broken; b != nil {
		out.refuse(b.number, b.err)
	}
	return out.finish()
}

// answers writes what came of each line, in order.
type answers[T any] struct {
	lineWork[T]
	x       *exchange
	rc      *http.ResponseController
	request string
	buf     []byte
	lines   int64 // answered so far
}

// chunk answers the lines of c.
func (o *answers[T]) chunk(c *chunk[T]) error {
	bad := c.bad
	for i, number := range c.where {
		for len(bad) > 0 && bad[0].number < number {
			o.refuse(bad[0].number, bad[0].err)
			bad = bad[1:]
		}
		var err error
		if o.buf, err = o.outcome(o.buf, i); err != nil {
			o.refuse(number, err)
		} else if !o.quiet {
			o.buf = append(o.buf, '\n')
		}
		o.lines++
	}
	for _, b := range bad {
		o.refuse(b.number, b.err)
	}
	return o.flush()
}

func (o *answers[T]) refuse(number int, err error) {
	e := wire.LineError{Line: number, Error: wire.MemberOf(err)}
	o.refused(e)
	if o.quiet {
		return
	}
	line, _ := json.Marshal(e) // plain fields: cannot fail
	o.buf = append(append(o.buf, line...), '\n')
}

// flush sends what has been gathered.
func (o *answers[T]) flush() error {
	if o.quiet || len(o.buf) == 0 {
		return nil
	}
	o.begin(ndjson)
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

func (o *answers[T]) begin(contentType string) {
	if o.x.status == 0 {
		o.x.Header().Set("Content-Type", contentType)
		o.x.WriteHeader(o.status)
	}
}

// abort ends the answer where nothing more can be kept: from line number on
// nothing was.
func (o *answers[T]) abort(number int, err error) error {
	if e, ok := errors.AsType[*fanfare.Error](err); ok {
		at := *e
		at.Line = number
		if number > 1 {
			at.Hint = "what stands before this line is stored; send the rest again"
		}
		err = &at
	}
	if o.quiet || o.x.status == 0 {
		o.rc.SetWriteDeadline(time.Now().Add(bulkIdle))
		return err
	}
	o.refuse(number, err)
	_ = o.flush() // the answer ends here, whether the client reads it or not
	return nil
}

// finish ends a whole answer.
func (o *answers[T]) finish() error {
	o.rc.SetWriteDeadline(time.Now().Add(bulkIdle))
	if o.quiet {
		return writeJSON(o.x, o.status, "application/json", o.summary())
	}
	o.begin(ndjson)
	return o.flush()
}
