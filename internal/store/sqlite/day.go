package sqlite

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"sync"

	"zombiezen.com/go/sqlite"

	"fanfare.dev/fanfare"
)

//go:embed day/[0-9]*.sql
var dayMigrations embed.FS

//go:embed day/queries.sql
var dayQueriesText string

var dayQueries = parseStatements(dayQueriesText)

const (
	dayWriterCacheKiB = 16 << 10
	dayReaderCacheKiB = 4 << 10
	dayReaders        = 4

	// dayAppID marks the file ("FanD").
	dayAppID = 0x46616e44
)

// day is the file of one day: one writer at a time, several readers.
type day struct {
	day  fanfare.Day
	path string

	mu     sync.Mutex // held by the one who writes
	writer *sqlite.Conn

	readers chan *sqlite.Conn // idle ones; nil stands for one that is not open yet
	closed  chan struct{}
}

func openDay(ctx context.Context, path string, of fanfare.Day, durability Durability) (*day, error) {
	writer, err := openWriter(path, durability, dayWriterCacheKiB)
	if err != nil {
		return nil, err
	}
	if err := migrate(ctx, writer, path, dayAppID, dayMigrations, "day"); err != nil {
		return nil, joinClose(fmt.Errorf("%s: %w", path, err), writer)
	}
	d := &day{day: of, path: path, writer: writer, readers: make(chan *sqlite.Conn, dayReaders), closed: make(chan struct{})}
	for range dayReaders {
		d.readers <- nil
	}
	return d, nil
}

// write runs fn in one transaction and commits it: all of it is kept, or nothing.
func (d *day) write(fn func(*sqlite.Conn) error) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	select {
	case <-d.closed: // between finding the day and this
		return unknownDay(d.day)
	default:
	}
	return transact(d.writer, fn)
}

// read runs fn on a connection that sees all that was committed so far.
func (d *day) read(ctx context.Context, fn func(*sqlite.Conn) error) error {
	var conn *sqlite.Conn
	select {
	case conn = <-d.readers:
	case <-d.closed:
		return unknownDay(d.day)
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { d.readers <- conn }()
	if conn == nil {
		opened, err := openReader(d.path, dayReaderCacheKiB)
		if err != nil {
			return err
		}
		conn = opened
	}
	conn.SetInterrupt(ctx.Done())
	err := fn(conn)
	conn.SetInterrupt(nil)
	return err
}

// snapshot runs fn on a connection that sees one moment throughout.
func (d *day) snapshot(ctx context.Context, fn func(*sqlite.Conn) error) error {
	return d.read(ctx, func(conn *sqlite.Conn) error {
		if err := step(conn, "BEGIN"); err != nil {
			return err
		}
		err := fn(conn)
		conn.SetInterrupt(nil) // the end must not be cut short
		return errors.Join(err, step(conn, "COMMIT"))
	})
}

// close waits for those who read and write, and refuses the others.
func (d *day) close() error {
	close(d.closed)
	var errs []error
	for range dayReaders {
		if conn := <-d.readers; conn != nil {
			errs = append(errs, conn.Close())
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return errors.Join(append(errs, d.writer.Close())...)
}

// transact runs fn between BEGIN and COMMIT. After an error nothing of it is
// kept, and the connection is ready for the next.
func transact(conn *sqlite.Conn, fn func(*sqlite.Conn) error) error {
	if err := step(conn, "BEGIN IMMEDIATE"); err != nil {
		return diskError(err)
	}
	err := fn(conn)
	if err == nil {
		err = step(conn, "COMMIT")
	}
	if err == nil {
		return nil
	}
	if !conn.AutocommitEnabled() { // a full disk rolls back by itself
		if rollback := step(conn, "ROLLBACK"); rollback != nil {
			err = fmt.Errorf("%w (and on rollback: %w)", err, rollback)
		}
	}
	return diskError(err)
}

func step(conn *sqlite.Conn, query string) error {
	stmt, err := conn.Prepare(query)
	if err != nil {
		return err
	}
	_, err = stmt.Step()
	if resetErr := stmt.Reset(); err == nil {
		err = resetErr
	}
	return err
}

// diskError says in our words what an operator can mend.
func diskError(err error) error {
	if err == nil {
		return nil
	}
	switch code := sqlite.ErrCode(err); code.ToPrimary() {
	case sqlite.ResultFull:
		return &fanfare.Error{Code: fanfare.DiskFull, Message: "the disk of the data directory is full", Hint: "free some space; nothing of this request was stored"}
	case sqlite.ResultIOErr, sqlite.ResultCantOpen, sqlite.ResultReadOnly:
		return fmt.Errorf("%w: %w", &fanfare.Error{Code: fanfare.Unavailable, Message: "the data directory cannot be written", Hint: "see the server's log"}, err)
	}
	return err
}
