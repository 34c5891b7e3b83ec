package sqlite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/durablefile"
	"fanfare.dev/fanfare/internal/store"
)

const (
	controlFile   = "control.db"
	sessionsFile  = "sessions.db"
	mailboxesFile = "mailboxes.db"
	daysFolder    = "deliveries"
	dayPrefix     = "deliveries-"
	daySuffix     = ".db"
)

// DB is the database of a data directory. It implements store.Database.
type DB struct {
	dir        string
	durability store.Durability
	control    *part
	sessions   *part
	mailboxes  *part

	mu     sync.Mutex
	days   map[fanfare.Day]*part
	closed bool
}

var _ store.Database = (*DB)(nil)

// Open opens the database of a data directory, creates missing files, and brings the schemas of control.db,
// sessions.db and mailboxes.db up to date. The file of a day is opened and brought up to date at its first use.
func Open(ctx context.Context, dir string, durability store.Durability) (*DB, error) {
	if err := durablefile.MakeDir(filepath.Join(dir, daysFolder), 0o700); err != nil {
		return nil, err
	}
	control, err := openPart(ctx, filepath.Join(dir, controlFile), &controlFormat, durability)
	if err != nil {
		return nil, told(err, couldNotWrite)
	}
	// If a crash interrupted an erasure before its last step, the log still contains old pages.
	if err := control.alone(emptyLog); err != nil {
		return nil, errors.Join(told(err, couldNotWrite), control.close(errClosed))
	}
	sessions, err := openPart(ctx, filepath.Join(dir, sessionsFile), &sessionFormat, durability)
	if err != nil {
		return nil, errors.Join(told(err, couldNotWrite), control.close(errClosed))
	}
	mailboxes, err := openPart(ctx, filepath.Join(dir, mailboxesFile), &mailboxFormat, durability)
	if err != nil {
		return nil, errors.Join(told(err, couldNotWrite), sessions.close(errClosed), control.close(errClosed))
	}
	// As above: an account may have been removed.
	if err := mailboxes.alone(emptyLog); err != nil {
		return nil, errors.Join(told(err, couldNotWrite), mailboxes.close(errClosed), sessions.close(errClosed), control.close(errClosed))
	}
	return &DB{dir: dir, durability: durability, control: control, sessions: sessions, mailboxes: mailboxes, days: map[fanfare.Day]*part{}}, nil
}

// Control returns the part in control.db.
func (db *DB) Control() store.Part { return db.control }

// Sessions returns the part in sessions.db.
func (db *DB) Sessions() store.Part { return db.sessions }

// Mailboxes returns the part in mailboxes.db.
func (db *DB) Mailboxes() store.Part { return db.mailboxes }

// Day returns the part in the file of a day.
func (db *DB) Day(ctx context.Context, of fanfare.Day, create bool) (store.Part, error) {
	db.mu.Lock()
	defer db.mu.Unlock()
	if p := db.days[of]; p != nil {
		return p, nil
	}
	if db.closed {
		return nil, errClosed
	}
	path := db.path(of)
	if !create {
		if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
			return nil, unknownDay(of)
		}
	}
	p, err := openPart(context.WithoutCancel(ctx), path, &dayFormat, db.durability)
	if err != nil {
		return nil, told(err, couldNotWrite)
	}
	db.days[of] = p
	return p, nil
}

// Days lists the days that have a file, newest first.
func (db *DB) Days(context.Context) ([]fanfare.Day, error) {
	db.mu.Lock()
	defer db.mu.Unlock()
	if db.closed {
		return nil, errClosed
	}
	entries, err := os.ReadDir(filepath.Join(db.dir, daysFolder))
	if err != nil {
		return nil, err
	}
	var days []fanfare.Day
	for _, entry := range entries {
		name, ok := strings.CutPrefix(entry.Name(), dayPrefix)
		if !ok {
			continue
		}
		if name, ok = strings.CutSuffix(name, daySuffix); !ok {
			continue
		}
		if d, err := fanfare.ParseDay(name); err == nil {
			days = append(days, d)
		}
	}
	slices.SortFunc(days, func(a, b fanfare.Day) int { return int(b - a) })
	return days, nil
}

// RemoveDay deletes the file of a day. It waits for readers and writers of the day.
func (db *DB) RemoveDay(_ context.Context, of fanfare.Day) error {
	db.mu.Lock()
	defer db.mu.Unlock()
	if db.closed {
		return errClosed
	}
	if p := db.days[of]; p != nil {
		delete(db.days, of)
		if err := p.close(unknownDay(of)); err != nil {
			return err
		}
	}
	path := db.path(of)
	for _, suffix := range []string{"-wal", "-shm", ""} {
		if err := os.Remove(path + suffix); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return nil
}

// Close closes all files. A second call does nothing.
func (db *DB) Close() error {
	db.mu.Lock()
	defer db.mu.Unlock()
	if db.closed {
		return nil
	}
	db.closed = true
	errs := []error{db.control.close(errClosed), db.sessions.close(errClosed), db.mailboxes.close(errClosed)}
	for _, p := range db.days {
		errs = append(errs, p.close(errClosed))
	}
	clear(db.days)
	return errors.Join(errs...)
}

func (db *DB) path(of fanfare.Day) string {
	return filepath.Join(db.dir, daysFolder, dayPrefix+of.String()+daySuffix)
}

var errClosed = &fanfare.Error{Code: fanfare.Unavailable, Message: "the database is closed", Hint: "the server is stopping; try again after it has restarted"}

func unknownDay(of fanfare.Day) error {
	return &fanfare.Error{Code: fanfare.NotFound, Message: fmt.Sprintf("there is no data for the day %s", of), Hint: "the day may be older than the retention period"}
}
