// Package postgres stores the state of Fanfare in a schema of a PostgreSQL database,
// version 15 or later: control tables, tables of sessions and of mailboxes, and for each
// day tables of the deliveries, which retention drops.
//
// State. One server owns the database at a time: it holds an advisory lock on a
// connection of its own, and a second server is refused at its start with an error that
// names the owner. Each server that starts increments the epoch under which the control
// tables are written, so that a server that was cut off and replaced can no longer write.
// There are four kinds of connections that do not wait for each other: for recording,
// for changes of the control tables, for reading, and for finding the result of a commit.
//
// A committed transaction is durable: in durability fsync synchronous_commit is on. In
// relaxed it is off, and a crash of PostgreSQL may lose the last transactions, a crash of
// this program does not.
//
// Failure. A transaction that fails by a conflict, a lost connection or a restart of the
// database is repeated for some seconds; then the error is Unavailable with a hint. A
// transaction whose COMMIT had no answer is repeated if all of its statements are
// idempotent; otherwise its slot says whether it was committed (slot.go). The server
// needs no restart after an outage of the database, or after the promotion of a standby
// that the URL also names.
//
// No error and no log contains the password of the URL.
package postgres

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/jackc/pgx/v5/pgxpool"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/store"
)

// DB is a PostgreSQL database that this server owns.
type DB struct {
	options   Options
	log       *slog.Logger
	own       own
	outage    outage
	heartbeat heartbeat
	absence   outage      // outage of the standby
	doubted   atomic.Bool // a check whether an outage has begun again is running
	owner     *owner
	epoch     int64
	slots     slots

	recording, control, reading *pgxpool.Pool
	settling                    *pgxpool.Pool // nil: the reading pool is used
	standby                     *pgxpool.Pool // nil: no standby

	controlStatements catalog
	sessionStatements catalog
	mailboxStatements catalog
	dayStatements     store.Statements

	mu     sync.Mutex
	days   map[fanfare.Day]*day
	making chan struct{} // full while a day is created

	closing  chan struct{}
	close    sync.Once
	replaced sync.Once
	fenced   chan struct{} // closed by replaced
	ending   sync.RWMutex  // write lock to set closing; read lock to start background work
	behind   sync.WaitGroup

	retries, losses atomic.Int64
	connected       atomic.Int64 // connections that the pools have made to the database
}

var _ store.Database = (*DB)(nil)

// Open opens the database at a URL and brings its schema up to date. It fails with Conflict if another server owns the
// database.
func Open(ctx context.Context, url string, options Options) (_ *DB, err error) {
	if options, err = options.withDefaults(); err != nil {
		return nil, err
	}
	db := newDB(options)
	defer func() {
		if err != nil {
			_ = db.Close() // the earlier error is returned
		}
	}()
	recording, control, reading, settling := options.shares()
	for _, pool := range []struct {
		as  **pgxpool.Pool
		url string
		use
	}{
		{&db.recording, url, use{recording, false, options.StatementTimeout}},
		{&db.control, url, use{control, false, options.StatementTimeout}},
		{&db.reading, url, use{reading, true, scanTimeout}},
		{&db.settling, url, use{settling, false, options.StatementTimeout}},
		{&db.standby, options.ReadURL, use{reading, true, scanTimeout}},
	} {
		if pool.url == "" || pool.size == 0 {
			continue
		}
		if *pool.as, err = db.pool(ctx, pool.url, pool.use); err != nil {
			return nil, err
		}
	}
	if err := db.takeOver(ctx, url, int(recording+control)); err != nil {
		return nil, err
	}
	db.later(db.listen)
	return db, nil
}

func newDB(options Options) *DB {
	db := &DB{options: options, log: options.Logger, own: newOwn(),
		outage: outage{log: options.Logger, level: slog.LevelError,
			lost: "the connection to the database was lost; requests that need the database wait or fail until it is available again", back: "the database is available again"},
		absence: outage{log: options.Logger, level: slog.LevelWarn,
			lost: "the standby cannot be reached; the server reads from the primary instead", back: "the server reads from the standby again"},

		controlStatements: newCatalog("control", store.ParseStatements(controlFile())),
		sessionStatements: newCatalog("sessions", store.ParseStatements(sessionFile())),
		mailboxStatements: newCatalog("mailboxes", store.ParseStatements(mailboxFile())),
		dayStatements:     store.ParseStatements(dayFile()),
		days:              map[fanfare.Day]*day{}, making: make(chan struct{}, 1), closing: make(chan struct{}), fenced: make(chan struct{})}
	db.outage.reach.Store(newReach())
	db.absence.reach.Store(newReach())
	return db
}

// Close waits for running calls, and releases the database for another server.
func (db *DB) Close() error {
	var err error
	db.close.Do(func() {
		db.ending.Lock()
		close(db.closing)
		db.ending.Unlock()
		db.behind.Wait()
		for _, pool := range []*pgxpool.Pool{db.recording, db.control, db.reading, db.settling, db.standby} {
			if pool != nil {
				pool.Close()
			}
		}
		err = db.owner.close()
	})
	return err
}

// Replaced returns a channel that is closed when a transaction was refused because another server has taken over the database, or is about to change
// the schema.
func (db *DB) Replaced() <-chan struct{} { return db.fenced }

func (db *DB) isClosed() bool {
	select {
	case <-db.closing:
		return true
	default:
		return false
	}
}

// Control returns the part with the control tables.
func (db *DB) Control() store.Part { return db.controlPart(db.reading) }

func (db *DB) controlPart(readers ...*pgxpool.Pool) store.Part {
	return &part{db, nil, db.controlStatements, db.control, readers, nil, scrubTables(nil)}
}

// Sessions returns the part with the tables of the sessions. It writes with the connections for recording.
func (db *DB) Sessions() store.Part {
	return &part{db, nil, db.sessionStatements, db.recording, []*pgxpool.Pool{db.reading}, nil, sessionTables}
}

// Mailboxes returns the part with the tables of the mailboxes. It writes with the connections for recording.
func (db *DB) Mailboxes() store.Part {
	return &part{db, nil, db.mailboxStatements, db.recording, []*pgxpool.Pool{db.reading}, nil, mailboxTables}
}

// lost records a lost connection.
func (db *DB) lost(cause error) {
	db.losses.Add(1)
	switch {
	case db.outage.on.Load():
	case !db.outage.stale():
		db.away(cause)
	case db.doubted.CompareAndSwap(false, true):
		db.later(func() {
			defer db.doubted.Store(false)
			if !db.reachable() {
				db.away(cause)
			}
		})
	}
}

func (db *DB) away(cause error) {
	if db.outage.begin(cause) {
		db.later(db.probe)
	}
}

// later runs background work that Close waits for. It does nothing after Close.
func (db *DB) later(fn func()) {
	db.ending.RLock()
	defer db.ending.RUnlock()
	if !db.isClosed() {
		db.behind.Go(fn)
	}
}

// Late returns the database for reads that may be slightly out of date: reports and traces. It reads from the standby if
// there is one.
func (db *DB) Late() store.Database {
	if db.standby == nil {
		return db
	}
	return late{db}
}

type late struct{ *DB }

func (l late) Control() store.Part { return l.controlPart(l.standby, l.reading) }

func (l late) Day(ctx context.Context, of fanfare.Day, create bool) (store.Part, error) {
	return l.dayPart(ctx, of, create, l.standby, l.reading)
}
