package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	"zombiezen.com/go/sqlite"

	"fanfare.dev/fanfare/internal/store"
)

// readers is how many read a file at once; more wait.
const readers = 4

// A part is one file: one writer at a time, several readers. It satisfies
// store.Part.
type part struct {
	path   string
	format *format

	mu     sync.Mutex // held by the one who writes
	writer *session
	bytes  *os.File // what file opened, or nil

	readers chan *session // idle ones; nil stands for one that is not open yet
	closed  chan struct{}
	gone    error // what is said once closed is
}

var _ store.Part = (*part)(nil)

func openPart(ctx context.Context, path string, format *format, durability store.Durability) (*part, error) {
	writer, err := openWriter(path, durability, format)
	if err != nil {
		return nil, err
	}
	if err := migrate(ctx, writer, path, format); err != nil {
		return nil, fmt.Errorf("open %s: %w", path, joinClose(err, writer))
	}
	p := &part{path: path, format: format, writer: newSession(writer, format),
		readers: make(chan *session, readers), closed: make(chan struct{})}
	for range readers {
		p.readers <- nil
	}
	return p, nil
}

// Write runs fn in one transaction, which the end of ctx does not cut short.
func (p *part) Write(_ context.Context, fn func(store.Session) error) error {
	return told(p.alone(func(conn *sqlite.Conn) error { return transact(conn, p.writing(fn)) }), couldNotWrite)
}

// Erase is Write that overwrites what it deletes.
func (p *part) Erase(_ context.Context, fn func(store.Session) error) error {
	return told(p.alone(func(conn *sqlite.Conn) error {
		return securely(conn, func() error { return transact(conn, p.writing(fn)) })
	}), couldNotWrite)
}

func (p *part) writing(fn func(store.Session) error) func(*sqlite.Conn) error {
	return func(*sqlite.Conn) error { return fn(p.writer) }
}

// Read runs fn on a connection that sees all that was committed so far.
func (p *part) Read(ctx context.Context, fn func(store.Session) error) error {
	return p.read(ctx, func(s *session) error { return fn(s) })
}

// Snapshot runs fn on a connection that sees one moment throughout.
func (p *part) Snapshot(ctx context.Context, fn func(store.Session) error) error {
	return p.read(ctx, func(s *session) (err error) {
		if err := step(s.conn, "BEGIN"); err != nil {
			return err
		}
		defer func() {
			s.conn.SetInterrupt(nil) // the end must not be cut short
			err = errors.Join(err, step(s.conn, "COMMIT"))
		}()
		return fn(s)
	})
}

// Scrub makes sure that names are in no unused byte of the file, nor in its
// write-ahead log.
func (p *part) Scrub(_ context.Context, names [][]byte) error {
	return told((&scrubber{p.file, p.alone}).scrub(names), couldNotWrite)
}

// file opens the file beside SQLite, to be read. It stays open as long as the part:
// who closes a file takes all locks of the process on it away, those of SQLite, too,
// and another program that looks at it then would delete its log on leaving.
func (p *part) file() (io.ReaderAt, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.closed:
		return nil, p.gone
	default:
	}
	if p.bytes == nil {
		f, err := os.Open(p.path)
		if err != nil {
			return nil, err
		}
		p.bytes = f
	}
	return p.bytes, nil
}

// alone lends the connection that writes, outside of a transaction.
func (p *part) alone(fn func(*sqlite.Conn) error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.closed: // between finding the part and this
		return p.gone
	default:
	}
	return fn(p.writer.conn)
}

func (p *part) read(ctx context.Context, fn func(*session) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	var s *session
	select {
	case s = <-p.readers:
	case <-p.closed:
		return p.gone
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { p.readers <- s }()
	if s == nil {
		conn, err := openReader(p.path, p.format.readerCacheKiB)
		if err != nil {
			return told(err, couldNotRead)
		}
		s = newSession(conn, p.format)
	}
	s.conn.SetInterrupt(ctx.Done())
	defer s.conn.SetInterrupt(nil)
	err := fn(s)
	if sqlite.ErrCode(err) == sqlite.ResultInterrupt && ctx.Err() != nil {
		return ctx.Err()
	}
	return told(err, couldNotRead)
}

// close waits for those who read and write, and refuses the others with gone.
func (p *part) close(gone error) error {
	p.gone = gone
	close(p.closed)
	var errs []error
	for range readers {
		if s := <-p.readers; s != nil {
			errs = append(errs, s.conn.Close())
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	errs = append(errs, p.writer.conn.Close())
	if p.bytes != nil {
		errs = append(errs, p.bytes.Close())
	}
	return errors.Join(errs...)
}

// transact runs fn between BEGIN and COMMIT. After an error or a panic nothing
// of it is kept, and the connection is ready for the next.
func transact(conn *sqlite.Conn, fn func(*sqlite.Conn) error) (err error) {
	if err := step(conn, "BEGIN IMMEDIATE"); err != nil {
		return err
	}
	defer func() {
		if conn.AutocommitEnabled() { // committed; or rolled back by SQLite, as when the disk is full
			return
		}
		if rollback := step(conn, "ROLLBACK"); rollback != nil {
			err = fmt.Errorf("%w (and on rollback: %w)", err, rollback)
		}
	}()
	if err := fn(conn); err != nil {
		return err
	}
	return step(conn, "COMMIT")
}
