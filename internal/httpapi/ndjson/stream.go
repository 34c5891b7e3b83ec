// Package ndjson handles bodies with one JSON object per line. It stores the lines in chunks and
// responds to each line while the rest of the body arrives.
package ndjson

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
	"fanfare.dev/fanfare/internal/background"
	"fanfare.dev/fanfare/internal/httpapi/httpio"
)

// Limits of bodies that are read line by line.
const (
	maxBulkBytes     = 4 << 30
	ChunkBytes       = 1 << 20   // size of a chunk; above the longest line
	pieceBytes       = 128 << 10 // of one Read
	linesBeforeYield = 256       // of a chunk, before other work may run
	chunksInFlight   = 4         // chunks in memory; reading waits for a free one
	bulkIdle         = 60 * time.Second
	lingerTime       = time.Second // for reading the rest of the body after the response
	lingerBytes      = 64 << 20
)

// A chunk holds consecutive complete lines of a stream. Chunks are reused.
type chunk[T any] struct {
	data  []byte // complete lines with their line ends
	first int    // number of the first one, from 1

	items       []T       // of the lines that could be decoded
	lineNumbers []int     // the number of the line of each item
	bad         []badLine // of the others, in order
	ready       chan struct{}
}

type badLine struct {
	number int
	err    error
}

// A stream splits a body into lines and decodes them on several goroutines, while the
// caller receives the chunks in the order of the body. A chunk is sent when it is full,
// or when no other chunk is in progress, so that a client that waits for responses gets
// them.
//
// At most chunksInFlight chunks and two pieces that were read ahead are in memory. Blank
// lines are counted and skipped.
type stream[T any] struct {
	decode       func(line []byte, item *T) error // item is zero
	maxLineBytes int                              // below chunkBytes
	maxLines     int                              // of a chunk
	body         io.Reader
	rc           *http.ResponseController
	stop         <-chan struct{} // closed when the server stops

	freeBuffers chan []byte // read buffers that are free
	pieces      chan piece  // what was read
	free        chan *chunk[T]
	idle        chan struct{} // a chunk was returned
	work        chan *chunk[T]
	order       chan *chunk[T]
	done        chan struct{} // closed by close
	read        chan struct{} // closed when reading has ended
	eof         bool          // the body was read to its end; set before read is closed
	ended       error         // the error that ended the body
	broken      *badLine      // why the body ended before its end; set before order is closed
}

// A piece is the result of one Read.
type piece struct {
	data []byte
	err  error
}

// start starts to read. The caller ranges over order, waits for ready of each chunk,
// returns the chunk with recycle, and finally calls close.
func (s *stream[T]) start() {
	s.freeBuffers, s.pieces = make(chan []byte, 2), make(chan piece)
	s.free, s.idle = make(chan *chunk[T], chunksInFlight), make(chan struct{}, 1)
	s.order, s.work = make(chan *chunk[T], chunksInFlight), make(chan *chunk[T], chunksInFlight)
	s.done, s.read = make(chan struct{}), make(chan struct{})
	for range cap(s.freeBuffers) {
		s.freeBuffers <- make([]byte, pieceBytes)
	}
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
	go s.readBody()
	go func() {
		defer close(s.order)
		defer close(s.work)
		s.buildChunks()
	}()
	go func() {
		var until time.Time
		select {
		case <-s.stop:
			until = time.Unix(1, 0)
		case <-s.done:
			until = time.Now().Add(lingerTime)
		case <-s.read:
		}
		select {
		case <-s.read: // the server sets the deadline again
		default:
			s.rc.SetReadDeadline(until) // wakes a Read that waits
		}
	}()
}

func (s *stream[T]) recycle(c *chunk[T]) {
	s.free <- c
	select {
	case s.idle <- struct{}{}:
	default:
	}
}

// close returns when the body is no longer being read. It reads the rest of the body for up
// to a second, because closing the connection earlier would reset it, and the
// client could lose the response.
func (s *stream[T]) close() {
	close(s.done)
	<-s.read
	if !s.eof {
		s.rc.SetReadDeadline(time.Now().Add(lingerTime))
		_, _ = io.CopyN(io.Discard, s.body, lingerBytes) // its error does not matter
	}
}

// readBody reads the pieces of the body, with a time-out for each and a limit of the
// total size.
func (s *stream[T]) readBody() {
	defer close(s.read)
	var total int64
	for {
		var into []byte
		select {
		case into = <-s.freeBuffers:
		case <-s.done:
			return
		}
		s.rc.SetReadDeadline(time.Now().Add(bulkIdle))
		n, err := 0, error(nil)
		if s.stopped() { // checked after the deadline is set, so that the goroutine above wins
			err = errStopping
		} else {
			n, err = s.body.Read(into)
		}
		total += int64(n)
		switch {
		case total > maxBulkBytes:
			n, err = 0, errBulkTooLarge
		case errors.Is(err, io.EOF):
			s.eof = true
			s.rc.SetReadDeadline(time.Time{})
		case errors.Is(err, os.ErrDeadlineExceeded) && s.stopped():
			err = errStopping
		}
		select {
		case s.pieces <- piece{into[:n], err}:
		case <-s.done:
			return
		}
		if err != nil {
			return
		}
	}
}

func (s *stream[T]) stopped() bool {
	select {
	case <-s.stop:
		return true
	case <-s.done:
		return true
	default:
		return false
	}
}

// buildChunks builds chunks from the pieces until the body ends.
func (s *stream[T]) buildChunks() {
	var tail []byte // the beginning of an incomplete line
	number := 1     // of the next line
	for {
		var c *chunk[T]
		select {
		case c = <-s.free:
		case <-s.done:
			return
		}
		if cap(c.data) == 0 {
			c.data = make([]byte, 0, ChunkBytes+pieceBytes+1) // one more for a missing line end
		}
		c.first, c.bad = number, c.bad[:0]
		c.data = append(c.data[:0], tail...)
		lines, whole, err := s.gather(c)
		tail = append(tail[:0], c.data[whole:]...)
		c.data = c.data[:whole]
		switch {
		case errors.Is(err, io.EOF) && len(tail) > 0:
			c.data = append(append(c.data, tail...), '\n')
			lines++
		case err == nil && lines == 0:
			c.bad = append(c.bad, badLine{number, longLine(s.maxLineBytes)})
			lines++
			tail = s.skipLine(tail[:0])
		}
		number += lines
		s.work <- c
		s.order <- c
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			s.broken = &badLine{number, bodyEndError(err)}
			return
		}
	}
}

// gather adds pieces to c until it is full, until it has a line while no other chunk is in
// progress, or until the body ends. It returns the number of complete lines and their size
// in c.data. Both are 0 without an error if a single line fills the chunk.
func (s *stream[T]) gather(c *chunk[T]) (lines, whole int, err error) {
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
		alone := len(s.free) == chunksInFlight-1
		switch {
		case lines == s.maxLines, len(c.data) >= ChunkBytes, lines > 0 && alone:
			return lines, whole, nil
		case s.ended != nil:
			return lines, whole, s.ended
		}
		select {
		case p := <-s.pieces:
			c.data = append(c.data, p.data...)
			s.recycleBuffer(p)
		case <-s.idle:
		case <-s.done:
			return 0, 0, errStopping
		}
	}
}

// skipLine drops the pieces up to the end of the line and returns the rest.
func (s *stream[T]) skipLine(rest []byte) []byte {
	for s.ended == nil {
		select {
		case p := <-s.pieces:
			i := bytes.IndexByte(p.data, '\n')
			if i >= 0 {
				rest = append(rest, p.data[i+1:]...)
			}
			s.recycleBuffer(p)
			if i >= 0 {
				return rest
			}
		case <-s.done:
			return rest
		}
	}
	return rest
}

// recycleBuffer returns the buffer of p and records the error that ended the body.
func (s *stream[T]) recycleBuffer(p piece) {
	s.ended = p.err
	s.freeBuffers <- p.data[:cap(p.data)]
}

// decodeChunk decodes the lines of c.
func (s *stream[T]) decodeChunk(c *chunk[T]) {
	var zero T
	c.items, c.lineNumbers = c.items[:0], c.lineNumbers[:0]
	number := c.first - 1
	for rest := c.data; len(rest) > 0; {
		i := bytes.IndexByte(rest, '\n')
		line := bytes.TrimSpace(rest[:i])
		rest = rest[i+1:]
		number++
		if n := number - c.first; n > linesBeforeYield {
			background.Yield(n)
		}
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
		c.lineNumbers = append(c.lineNumbers, number)
	}
}

var (
	errStopping     = errors.New("the server is stopping")
	errBulkTooLarge = errors.New("the body is too large")
)

// bodyEndError returns the error for the client when a body was not read to its end.
func bodyEndError(err error) error {
	switch {
	case errors.Is(err, errStopping):
		return &fanfare.Error{Code: fanfare.Unavailable, Message: "the server is stopping", Hint: "the lines before this one have been answered; send this line and the rest again in a moment"}
	case errors.Is(err, errBulkTooLarge):
		return &fanfare.Error{Code: fanfare.TooLarge, Message: "the body is larger than 4 GiB", Hint: "the lines before this one have been answered; send the rest in another request"}
	}
	broken := httpio.BodyError(err, maxBulkBytes)
	broken.Hint = "the lines before this one have been answered; send this line and the rest again"
	return broken
}

func longLine(limitBytes int) error {
	return &fanfare.Error{Code: fanfare.TooLarge, Message: "the line is longer than " + strconv.Itoa(limitBytes) + " bytes", Hint: "send one JSON object per line, each shorter than this limit"}
}
