package sqlite

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"sync"

	"zombiezen.com/go/sqlite"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/registry"
)

const (
	controlWriterCacheKiB = 32 << 10
	controlReaderCacheKiB = 4 << 10
	controlReaders        = 4 // at once; more wait

	// controlAppID marks the file ("FanC").
	controlAppID = 0x46616e43
)

//go:embed control/[0-9]*.sql
var controlMigrations embed.FS

// Control keeps the registry in control.db. It satisfies registry.Store.
type Control struct {
	path    string
	mu      sync.Mutex // held by the one who writes
	writer  *sqlite.Conn
	readers chan *sqlite.Conn
}

var _ registry.Store = (*Control)(nil)

// OpenControl opens or creates the file and brings its schema up to date.
func OpenControl(ctx context.Context, path string, durability Durability) (*Control, error) {
	writer, err := openWriter(path, durability, controlWriterCacheKiB)
	if err != nil {
		return nil, err
	}
	c := &Control{path: path, writer: writer, readers: make(chan *sqlite.Conn, controlReaders)}
	if err := migrate(ctx, writer, path, controlAppID, controlMigrations, "control"); err != nil {
		return nil, fmt.Errorf("open %s: %w", path, errors.Join(err, c.Close()))
	}
	// An erasure that was ended by a crash before its last step has left pages in
	// the log as they were before.
	if err := emptyLog(writer); err != nil {
		return nil, fmt.Errorf("open %s: %w", path, errors.Join(err, c.Close()))
	}
	for range controlReaders {
		reader, err := openReader(path, controlReaderCacheKiB)
		if err != nil {
			return nil, errors.Join(err, c.Close())
		}
		c.readers <- reader
	}
	return c, nil
}

// Close closes all connections. Nothing else may be under way.
func (c *Control) Close() error {
	var errs []error
	for {
		select {
		case reader := <-c.readers:
			errs = append(errs, reader.Close())
			continue
		default:
		}
		break
	}
	if c.writer != nil {
		errs = append(errs, c.writer.Close())
		c.writer = nil
	}
	return errors.Join(errs...)
}

// read runs f on a connection that only reads, and interrupts it when ctx ends.
func (c *Control) read(ctx context.Context, f func(*sqlite.Conn) error) error {
	var conn *sqlite.Conn
	select {
	case conn = <-c.readers:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() {
		conn.SetInterrupt(nil)
		c.readers <- conn
	}()
	conn.SetInterrupt(ctx.Done())
	err := f(conn)
	if err != nil && ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

// A failure is an error of SQLite that a user can meet: what they are told, and
// the cause for the log.
type failure struct {
	told  *fanfare.Error
	cause error
}

func (f *failure) Error() string   { return f.told.Message + ": " + f.cause.Error() }
func (f *failure) Unwrap() []error { return []error{f.told, f.cause} }

func storeError(cause error) error {
	told := &fanfare.Error{Code: fanfare.Unavailable, Message: "the control store could not be written, nothing was kept",
		Hint: "the server's log has the cause"}
	if sqlite.ErrCode(cause).ToPrimary() == sqlite.ResultFull {
		told = &fanfare.Error{Code: fanfare.DiskFull, Message: "the disk is full, nothing was kept",
			Hint: "free some space and try again"}
	}
	return &failure{told, cause}
}
