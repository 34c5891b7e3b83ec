package postgres

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgconn/ctxwatch"

	"fanfare.dev/fanfare"
)

// ownerLock ("Fanf") is the first key of the advisory lock that a server holds as long as it runs; the second is a hash of
// the schema.
const ownerLock = 0x46616e66

const (
	leastVersion = "15"

	// takeOverWait is how long a starting server waits for the previous one, whose connections may not be closed yet.
	takeOverWait = 5 * time.Second
	takeOverPoll = 50 * time.Millisecond
)

// An owner holds the lock on its own connection.
type owner struct {
	db     *DB
	config *pgx.ConnConfig
	conn   *pgx.Conn
	stop   context.CancelFunc
	ended  chan struct{}
}

// takeOver makes this server the owner of the database: it takes the lock, brings the schema up to date, and increments
// the epoch.
func (db *DB) takeOver(ctx context.Context, url string, writers int) error {
	config, err := parse(url)
	if err != nil {
		return err
	}
	db.options.configure(config, use{timeout: scanTimeout})
	// No request to cancel is sent: Close would wait for it, and there is nothing to cancel.
	config.ConnConfig.BuildContextWatcherHandler = func(pg *pgconn.PgConn) ctxwatch.Handler {
		return &pgconn.DeadlineContextWatcherHandler{Conn: pg.Conn()}
	}
	o := &owner{db: db, config: config.ConnConfig}
	err = o.takeOver(ctx, writers)
	if err != nil {
		if o.conn != nil {
			_ = o.conn.Close(context.WithoutCancel(ctx)) // no data depends on it
		}
		var told *fanfare.Error
		if ctx.Err() != nil || errors.As(err, &told) {
			return err
		}
		of := troubleOf(err)
		if of == stranger && o.config.Password == "" {
			of = nameless
		}
		return newFailure(of, err)
	}
	watch, stop := context.WithCancel(context.Background())
	o.stop, o.ended = stop, make(chan struct{})
	db.owner = o
	go o.watch(watch)
	return nil
}

func (o *owner) takeOver(ctx context.Context, writers int) error {
	retry := retry{db: o.db}
	for {
		err := o.connect(ctx)
		if err == nil {
			break
		}
		if !retry.again(ctx, troubleOf(err)) {
			return err
		}
	}
	if err := o.suitable(); err != nil {
		return err
	}
	for since := time.Now(); ; {
		locked, err := o.lock(ctx)
		if err != nil {
			return err
		}
		if locked {
			break
		}
		if time.Since(since) > takeOverWait {
			return o.held(ctx)
		}
		if err := sleep(ctx, takeOverPoll); err != nil {
			return err
		}
	}
	if o.db.options.Node != "" {
		return o.join(ctx, writers)
	}
	if o.db.options.Lease != nil { // an older node that still runs must not write while the schema changes
		if err := o.raise(ctx, writers); err != nil {
			return err
		}
	}
	if err := migrate(ctx, o.conn); err != nil {
		return err
	}
	if err := o.raise(ctx, writers); err != nil {
		return err
	}
	days, err := listDays(ctx, o.conn)
	for _, of := range days {
		o.db.keep(of)
	}
	return err
}

// suitable refuses a server that is too old or stores text in another encoding.
func (o *owner) suitable() error {
	of := o.conn.PgConn()
	if major, _, _ := strings.Cut(of.ParameterStatus("server_version"), "."); len(major) < 2 || major < leastVersion {
		return &fanfare.Error{Code: fanfare.Invalid, Message: "PostgreSQL " + of.ParameterStatus("server_version") + " is not supported",
			Hint: "use version " + leastVersion + " or later"}
	}
	if encoding := of.ParameterStatus("server_encoding"); encoding != "UTF8" {
		return &fanfare.Error{Code: fanfare.Invalid, Message: "the database has the unsupported encoding " + encoding,
			Hint: "create a database WITH ENCODING 'UTF8' TEMPLATE template0"}
	}
	return nil
}

func (o *owner) connect(ctx context.Context) (err error) {
	o.conn, err = pgx.ConnectConfig(ctx, o.config)
	return err
}

// lock takes the lock. The nodes of a cluster share it.
func (o *owner) lock(ctx context.Context) (locked bool, err error) {
	function := "pg_try_advisory_lock"
	if o.db.options.shared {
		function = "pg_try_advisory_lock_shared"
	}
	err = o.conn.QueryRow(ctx, "SELECT "+function+"($1, hashtext(current_setting('search_path')))", ownerLock).Scan(&locked)
	return locked, err
}

// held returns the error that names the current owner.
func (o *owner) held(ctx context.Context) error {
	who, err := holder(ctx, o.conn)
	if err != nil {
		return err
	}
	return &fanfare.Error{Code: fanfare.Conflict, Message: "another server is using the database: " + who,
		Hint: "stop the other server first; if it was killed, PostgreSQL releases its lock within 30 seconds"}
}

// ownerHolds selects the lock of the owner of a schema in pg_locks.
const ownerHolds = `WHERE l.locktype = 'advisory' AND l.granted AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
	AND l.classid = $1 AND l.objid = (hashtext(current_setting('search_path'))::bigint & 4294967295)::oid`

// holder returns the name of the server that owns the database, or "".
func holder(ctx context.Context, conn *pgx.Conn) (string, error) {
	var name string
	var address *netip.Prefix
	var since time.Time
	err := conn.QueryRow(ctx, `SELECT a.application_name, a.client_addr, a.backend_start FROM pg_locks l JOIN pg_stat_activity a USING (pid) `+ownerHolds, uint32(ownerLock)).Scan(&name, &address, &since)
	if errors.Is(err, pgx.ErrNoRows) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	from := "this machine"
	if address != nil {
		from = address.Addr().String()
	}
	return fmt.Sprintf("%s at %s, since %s", name, from, since.UTC().Format(time.RFC3339)), nil
}

// The slots of a node that does not lead have negative numbers: nodeSlots of them for each value of a hash of its name.
const nodeSlots = 256

// join gives a node that does not lead an epoch in slots of its own. A process that had the name of the node before can no longer write.
func (o *owner) join(ctx context.Context, writers int) error {
	if err := current(ctx, o.conn); err != nil {
		return err
	}
	tx, err := o.conn.Begin(ctx)
	if err != nil {
		return err
	}
	defer tx.Rollback(context.WithoutCancel(ctx)) //nolint:errcheck // it is committed, or lost with its connection
	var epoch int64
	var first int32
	err = tx.QueryRow(ctx, "UPDATE meta SET value = value + 1 WHERE name = 'epoch' RETURNING value, -$2::int * (1 + (hashtext($1) & 4194303))", o.db.options.Node, nodeSlots).Scan(&epoch, &first)
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, "INSERT INTO writers (slot, epoch, token) SELECT n, $1, 0 FROM generate_series($2::int, $3::int) n ON CONFLICT (slot) DO UPDATE SET epoch = $1, token = 0",
		epoch, first, first+int32(writers)-1)
	if err != nil {
		return err
	}
	if err := tx.Commit(ctx); err != nil {
		return err
	}
	o.db.epoch, o.db.slots = epoch, newSlots(epoch, first, writers)
	return nil
}

// raise gives this server its own epoch in the row of each writer. It waits for transactions of an older epoch; later ones
// are refused. A node that leads leaves the slots of the other nodes alone, unless it is about to change the schema: a node of an older version
// must then stop writing.
func (o *owner) raise(ctx context.Context, writers int) error {
	tx, err := o.conn.Begin(ctx)
	if err != nil {
		return err
	}
	defer tx.Rollback(context.WithoutCancel(ctx)) //nolint:errcheck // it is committed, or lost with its connection
	if l := o.db.options.Lease; l != nil {
		var held bool
		err := tx.QueryRow(ctx, "SELECT true FROM leases WHERE name = $1 AND node = $2 AND epoch = $3 FOR SHARE", LeaderLease, l.Node, l.Epoch).Scan(&held)
		if errors.Is(err, pgx.ErrNoRows) {
			return errReplaced
		}
		if err != nil {
			return err
		}
	}
	var epoch int64
	if err := tx.QueryRow(ctx, "UPDATE meta SET value = value + 1 WHERE name = 'epoch' RETURNING value").Scan(&epoch); err != nil {
		return err
	}
	others := o.db.options.Lease == nil || errors.Is(current(ctx, tx.Conn()), errOlder)
	if _, err := tx.Exec(ctx, "UPDATE writers SET epoch = $1, token = 0 WHERE slot > 0 OR $2", epoch, others); err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, "INSERT INTO writers (slot, epoch, token) SELECT n, $1, 0 FROM generate_series(1, $2::int) n ON CONFLICT (slot) DO NOTHING", epoch, writers); err != nil {
		return err
	}
	if err := tx.Commit(ctx); err != nil {
		return err
	}
	o.db.epoch = epoch
	o.db.slots = newSlots(epoch, 1, writers)
	return nil
}

// watch holds the lock as long as the server runs, and replaces a lost connection.
func (o *owner) watch(ctx context.Context) {
	defer close(o.ended)
	for ctx.Err() == nil {
		if o.conn != nil && !o.conn.IsClosed() {
			err := o.beat(ctx)
			if err == nil || ctx.Err() != nil {
				continue
			}
			_ = o.conn.Close(ctx) // a connection that was silent for long is still open
			o.db.lost(err)
		}
		o.again(ctx)
	}
}

// again takes the lock anew. If another server holds it, that server has incremented the epoch, and writes of this server
// are refused.
func (o *owner) again(ctx context.Context) {
	retry := retry{db: o.db}
	told := false
	for retry.pause(ctx) {
		if err := o.connect(ctx); err != nil {
			continue
		}
		locked, err := o.lock(ctx)
		if err == nil && locked {
			o.db.outage.over()
			return
		}
		if err == nil && !told {
			told = true
			o.db.log.Error("another server has taken over the database", "error", o.held(ctx))
		}
		_ = o.conn.Close(ctx)
	}
}

func (o *owner) close() error {
	if o == nil {
		return nil
	}
	o.stop()
	<-o.ended
	if o.conn == nil || o.conn.IsClosed() {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), connectTimeout)
	defer cancel()
	return o.conn.Close(ctx)
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
