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

// readers is the maximum number of concurrent readers of a file; more readers wait.
const readers = 4

// A part is one file with one writer at a time and several readers. It implements store.Part.
type part struct {
	path   string
	format *format

	mu     sync.Mutex // held by the writer
	writer *session
	bytes  *os.File // opened by file, or nil

	readers chan *session // idle sessions; nil stands for one that is not open yet
	closed  chan struct{}
	gone    error // the error after closed was closed
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

// Write runs fn in one transaction, which is not interrupted when ctx ends.
func (p *part) Write(_ context.Context, fn func(store.Session) error) error {
	return told(p.alone(func(conn *sqlite.Conn) error { return transact(conn, p.writing(fn)) }), couldNotWrite)
}

// Erase is Write that overwrites deleted data.
func (p *part) Erase(_ context.Context, fn func(store.Session) error) error {
	return told(p.alone(func(conn *sqlite.Conn) error {
		return securely(conn, func() error { return transact(conn, p.writing(fn)) })
	}), couldNotWrite)
}

func (p *part) writing(fn func(store.Session) error) func(*sqlite.Conn) error {
	return func(*sqlite.Conn) error { return fn(p.writer) }
}

// Read runs fn on a connection that sees all previous commits.
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
			s.conn.SetInterrupt(nil) // the rollback must not be interrupted
			err = errors.Join(err, step(s.conn, "COMMIT"))
		}()
		return fn(s)
	})
}

// Scrub removes names from all unused bytes of the file, and from its write-ahead log.
func (p *part) Scrub(_ context.Context, names [][]byte) error {
	return told((&scrubber{p.file, p.alone}).scrub(names), couldNotWrite)
}

// file opens the file for reading, beside SQLite. It stays open as long as the part, because closing a file releases all
// locks of the process on it, including those of SQLite; another program that opened the file in that moment would then
// delete its log on exit.
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

// alone runs fn with the writing connection, outside of a transaction.
func (p *part) alone(fn func(*sqlite.Conn) error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.closed: // closed between looking up the part and this call
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

// close waits for readers and writers, and makes later calls fail with gone.
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

// transact runs fn between BEGIN and COMMIT. After an error or a panic it rolls back, and the connection is ready for the
// next transaction.
func transact(conn *sqlite.Conn, fn func(*sqlite.Conn) error) (err error) {
	if err := step(conn, "BEGIN IMMEDIATE"); err != nil {
		return err
	}
	defer func() {
		if conn.AutocommitEnabled() { // committed, or rolled back by SQLite, for example because the disk is full
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
