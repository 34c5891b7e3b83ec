package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"fanfare.dev/fanfare/internal/store"
)

const (
	// maxUnsentBytes is the size of queued statements from which they are sent. The server works on them while more are
	// queued.
	maxUnsentBytes = 256 << 10
	// maxUnanswered is the maximum number of statements that wait for their answers.
	maxUnanswered = 1000
)

// A session sends statements over one connection without waiting for the answers. Reading rows or ending the transaction
// reads all of them.
//
// In a transaction the first error is final: nothing is sent after it.
type session struct {
	conn  *conn
	pipe  *pgconn.Pipeline
	known catalog

	begin  *statement // nil: each statement is its own transaction
	end    *statement // used instead of COMMIT
	begun  bool
	guard  bool // a statement was sent that must not be committed twice
	wary   bool // rows to insert may exist already
	unsent int  // approximate number of bytes
	sent   []answer
	busy   *statement // the statement whose rows are being visited

	err       error         // the first error of the server or the connection
	lost      bool          // the connection is unusable
	served    bool          // a statement was answered
	visited   bool          // a row was visited
	committed bool          // the server confirmed the commit
	limit     time.Duration // how long the server may be silent; 0: until the context ends
	waiting   time.Time     // approximate start of the wait

	row row
}

var _ store.Session = (*session)(nil)

// An answer is an expected answer of the server.
type answer struct {
	to      *statement
	prepare bool
	row     func(int, store.Row) error // nil: the rows are ignored
	set     int                        // number of the set of EachOf
}

func (s *session) open(ctx context.Context) { s.pipe = s.conn.pg.StartPipeline(ctx) }

// wait limits the next exchange with the server, because it may be frozen, or a network device may have dropped the
// connection without a notice.
func (s *session) wait() error {
	if s.limit == 0 {
		return nil
	}
	s.waiting = time.Now()
	return s.conn.pg.Conn().SetDeadline(s.waiting.Add(s.limit))
}

// waitOn restarts the limit after each row: a long answer, and the function that visits its rows, may take any time as
// long as rows arrive.
func (s *session) waitOn() error {
	if s.limit == 0 || time.Since(s.waiting) < s.limit/10 {
		return nil
	}
	return s.wait()
}

// close ends the pipeline. The connection can be used again unless it is lost.
func (s *session) close() {
	if err := s.pipe.Close(); err != nil && !told(err) {
		s.lost = true
	}
	s.lost = s.lost || s.conn.pg.IsClosed()
}

func (s *session) Run(name string, args ...any) error {
	st, err := s.ready(name)
	if err != nil {
		return err
	}
	return s.send(answer{to: st}, args)
}

func (s *session) Each(name string, row func(store.Row) error, args ...any) error {
	st, err := s.ready(name)
	if err != nil {
		return err
	}
	if err := s.send(answer{to: st, row: func(_ int, r store.Row) error { return row(r) }}, args); err != nil {
		return err
	}
	return s.settle()
}

func (s *session) EachOf(name string, n int, args func(int) []any, row func(int, store.Row) error) error {
	if n == 0 {
		return nil
	}
	st, err := s.ready(name)
	if err != nil {
		return err
	}
	for i := range n {
		if err := s.send(answer{to: st, row: row, set: i}, args(i)); err != nil {
			return err
		}
		if len(s.sent) >= maxUnanswered {
			if err := s.settle(); err != nil {
				return err
			}
		}
	}
	return s.settle()
}

// ready finds a statement of a transaction and prepares it.
func (s *session) ready(name string) (*statement, error) {
	if s.busy != nil {
		return nil, fmt.Errorf("statement %q cannot run while the rows of %q are read: a session runs one statement at a time", name, s.busy.name)
	}
	st, err := s.known.find(name)
	if err != nil {
		return nil, err
	}
	if err := s.ended(); err != nil {
		return nil, err
	}
	if s.begin != nil && !s.begun {
		s.begun = true
		if err := s.own(s.begin); err != nil {
			return nil, err
		}
	}
	return st, s.prepare(st)
}

// ended returns the error after which nothing more is sent.
func (s *session) ended() error {
	if s.err != nil && (s.begin != nil || s.lost) {
		return s.err
	}
	return nil
}

// prepare waits for the server only if no connection has asked for the statement's shape before.
func (s *session) prepare(st *statement) error {
	if s.conn.prepared[st] {
		return nil
	}
	shape := st.shape.Load()
	if shape == nil {
		if err := s.settle(); err != nil { // errors of queued statements do not belong to this one
			return err
		}
	}
	var oids []uint32
	if shape != nil {
		oids = shape.ParamOIDs
	}
	s.pipe.SendPrepare(st.name, st.text, oids)
	s.conn.prepared[st] = true
	s.expect(answer{to: st, prepare: true}, len(st.text))
	if shape != nil {
		return nil
	}
	return s.settle()
}

// own queues a statement of the driver.
func (s *session) own(st *statement, args ...any) error {
	if err := s.prepare(st); err != nil {
		return err
	}
	return s.send(answer{to: st}, args)
}

func (s *session) send(to answer, args []any) error {
	oids := to.to.shape.Load().ParamOIDs
	if len(args) != len(oids) {
		return fmt.Errorf("statement %q has %d parameters, but got %d arguments", to.to.name, len(oids), len(args))
	}
	s.conn.params.reset()
	for i, arg := range args {
		if err := s.conn.params.add(oids[i], arg); err != nil {
			return fmt.Errorf("statement %q: argument %d: %w", to.to.name, i+1, err)
		}
	}
	return s.execute(to, s.conn.params.values)
}

// execute encodes an execution, and sends the queued messages when they are large enough.
func (s *session) execute(to answer, values [][]byte) error {
	s.guard = s.guard || !to.to.idempotent
	s.pipe.SendQueryStatement(to.to.shape.Load(), values, binaryFormat, binaryFormat)
	size := 0
	for _, v := range values {
		size += len(v) + 8
	}
	s.expect(to, size)
	if s.unsent < maxUnsentBytes {
		return nil
	}
	s.unsent = 0
	if err := s.wait(); err != nil {
		return s.failed(err)
	}
	return s.failed(s.pipe.Flush())
}

func (s *session) expect(a answer, size int) {
	s.sent = append(s.sent, a)
	s.unsent += size
}

// failed records an error of the server or the connection.
func (s *session) failed(err error) error {
	if err == nil {
		return nil
	}
	if !told(err) || s.conn.pg.IsClosed() {
		s.lost = true
	}
	if s.err == nil {
		s.err = err
	}
	return err
}
