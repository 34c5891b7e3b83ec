package api

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"os"
	"runtime"
	"strconv"
	"time"

	"fanfare.dev/fanfare"
)

// Limits of bodies that are read line by line.
const (
	maxBulkBytes   = 4 << 30
	chunkBytes     = 1 << 20 // what is read before it is worked on; longer than any line may be
	chunksInFlight = 4       // read, being decoded, or waiting for their turn; then reading waits
	bulkIdle       = 60 * time.Second
)

// A chunk is a run of whole lines on its way through a stream. It is used
// again and again.
type chunk[T any] struct {
	data  []byte // lines, each with its end
	first int    // number of the first one, from 1

	items []T       // of the lines that could be decoded
	where []int     // the number of the line of each item
	bad   []badLine // of the others, in order
	ready chan struct{}
}

type badLine struct {
	number int
	err    error
}

// A stream takes a body apart into lines and decodes them on several
// goroutines, while the caller takes the chunks in the order of the body. A
// chunk sets off when it is full, or as soon as nothing else is under way, so
// that a client that waits for answers gets them.
//
// At most chunksInFlight chunks are in memory. Blank lines are counted and
// left out.
type stream[T any] struct {
	decode       func(line []byte, item *T) error // item is zero
	maxLineBytes int                              // below chunkBytes
	maxLines     int                              // of a chunk
	body         io.Reader
	rc           *http.ResponseController
	stop         <-chan struct{} // closed when the server stops

	total  int64
	free   chan *chunk[T]
	order  chan *chunk[T]
	work   chan *chunk[T]
	done   chan struct{} // closed when the caller takes no more
	read   chan struct{} // closed when nothing is read any more
	broken *badLine      // why the body ended before its end; set before order is closed
}

// start begins to read. The caller ranges over order, waits for each chunk's
// ready, gives it back with recycle, and calls close in the end.
func (s *stream[T]) start() {
	s.free = make(chan *chunk[T], chunksInFlight)
	s.order = make(chan *chunk[T], chunksInFlight)
	s.work = make(chan *chunk[T], chunksInFlight)
	s.done, s.read = make(chan struct{}), make(chan struct{})
	for range chunksInFlight {
		s.free <- &chunk[T]{ready: make(chan struct{}, 1)}
	}
	for range min(runtime.GOMAXPROCS(0), chunksInFlight) {
		go func() {
			for c := range s.work {
				s.decodeChunk(c)
				c.ready <- struct{}{}
			}
		}()
	}
	go func() {
		defer close(s.order)
		defer close(s.work)
		defer close(s.read)
		s.readAll()
	}()
	go func() {
		select {
		case <-s.stop:
		case <-s.done:
		case <-s.read:
		}
		select {
		case <-s.read: // the deadline is the server's again
		default:
			s.rc.SetReadDeadline(time.Unix(1, 0)) // wakes a Read that waits
		}
	}()
}

func (s *stream[T]) recycle(c *chunk[T]) { s.free <- c }

// close lets go of the body and returns when nothing reads it any more.
func (s *stream[T]) close() {
	close(s.done)
	<-s.read
}

// readAll makes chunks of the body until it ends.
func (s *stream[T]) readAll() {
	var tail []byte // the beginning of a line whose rest has not come yet
	number := 1     // of the line that comes next
	for {
		var c *chunk[T]
		select {
		case c = <-s.free:
		case <-s.done:
			return
		}
		if cap(c.data) == 0 {
			c.data = make([]byte, 0, chunkBytes+1) // and a line end that the body lacks
		}
		c.first, c.bad = number, c.bad[:0]
		c.data = append(c.data[:0], tail...)
		lines, whole, err := s.fill(c)
		tail = append(tail[:0], c.data[whole:]...)
		c.data = c.data[:whole]
		switch {
		case err == io.EOF && len(tail) > 0:
			c.data = append(append(c.data, tail...), '\n')
			lines++
		case err == nil && whole == 0:
			tail, err = s.skipLine(tail)
			c.bad = append(c.bad, badLine{number, longLine(s.maxLineBytes)})
			lines++
		}
		number += lines
		s.work <- c
		s.order <- c
		if err == io.EOF {
			return
		}
		if err != nil {
			s.broken = &badLine{number, breakage(err)}
			return
		}
	}
}

// fill reads until c is full of whole lines, or has any while nothing else is
// under way. It returns how many there are, and how much of c.data they are:
// nothing, without an error, where a single line fills the chunk.
func (s *stream[T]) fill(c *chunk[T]) (lines, whole int, err error) {
	scanned := 0
	for {
		for lines < s.maxLines {
			i := bytes.IndexByte(c.data[scanned:], '\n')
			if i < 0 {
				scanned = len(c.data)
				break
			}
			scanned += i + 1
			whole = scanned
			lines++
		}
		idle := lines > 0 && len(s.free) == chunksInFlight-1
		if idle || lines == s.maxLines || len(c.data) >= chunkBytes {
			return lines, whole, nil // an error comes back with the next Read
		}
		if err != nil {
			return lines, whole, err
		}
		var n int
		n, err = s.more(c.data[len(c.data):chunkBytes])
		c.data = c.data[:len(c.data)+n]
	}
}

// skipLine reads to the end of a line and returns what came after it.
func (s *stream[T]) skipLine(scratch []byte) (rest []byte, err error) {
	for err == nil {
		var n int
		n, err = s.more(scratch)
		if i := bytes.IndexByte(scratch[:n], '\n'); i >= 0 {
			return scratch[i+1 : n], err
		}
	}
	return nil, err
}

// more reads on, within the time that a body may stand still and up to the
// size that it may have.
func (s *stream[T]) more(into []byte) (int, error) {
	s.rc.SetReadDeadline(time.Now().Add(bulkIdle))
	select {
	case <-s.stop: // looked at after the deadline is set, so that the waker comes later
		return 0, errStopping
	case <-s.done:
		return 0, errStopping
	default:
	}
	n, err := s.body.Read(into)
	s.total += int64(n)
	switch {
	case s.total > maxBulkBytes:
		return 0, errBulkTooLarge
	case err == io.EOF:
		s.rc.SetReadDeadline(time.Time{})
	case errors.Is(err, os.ErrDeadlineExceeded):
		select {
		case <-s.stop:
			err = errStopping
		default:
		}
	}
	return n, err
}

// decodeChunk decodes the lines of c.
func (s *stream[T]) decodeChunk(c *chunk[T]) {
	var zero T
	c.items, c.where = c.items[:0], c.where[:0]
	number := c.first - 1
	for rest := c.data; len(rest) > 0; {
		i := bytes.IndexByte(rest, '\n')
		line := bytes.TrimSpace(rest[:i])
		rest = rest[i+1:]
		number++
		if len(line) == 0 {
			continue
		}
		if len(line) > s.maxLineBytes {
			c.bad = append(c.bad, badLine{number, longLine(s.maxLineBytes)})
			continue
		}
		c.items = append(c.items, zero)
		if err := s.decode(line, &c.items[len(c.items)-1]); err != nil {
			c.items = c.items[:len(c.items)-1]
			c.bad = append(c.bad, badLine{number, err})
			continue
		}
		c.where = append(c.where, number)
	}
}

var (
	errStopping     = errors.New("the server is stopping")
	errBulkTooLarge = errors.New("the body is too large")
)

// breakage says to the client why a body was not read to its end.
func breakage(err error) error {
	switch err {
	case errStopping:
		return &fanfare.Error{Code: fanfare.Unavailable, Message: "the server is stopping", Hint: "what stands before this line is answered; send the rest again in a moment"}
	case errBulkTooLarge:
		return &fanfare.Error{Code: fanfare.TooLarge, Message: "the body is larger than 4 GiB", Hint: "what stands before this line is answered; send the rest as another body"}
	}
	broken := bodyError(err, maxBulkBytes).(*fanfare.Error)
	broken.Hint = "what stands before this line is answered; send the rest again"
	return broken
}

func longLine(limitBytes int) error {
	return &fanfare.Error{Code: fanfare.TooLarge, Message: "the line is longer than " + strconv.Itoa(limitBytes) + " bytes", Hint: "each line is one JSON object"}
}
