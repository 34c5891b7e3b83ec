package postgres

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgconn/ctxwatch"
	"github.com/jackc/pgx/v5/pgxpool"
)

// A frozen database accepts connections and answers nothing: no error reports the outage, and
// a statement would wait until its time limit. The connection of the owner therefore sends a
// heartbeat. If it gets no answer, or a new connection cannot be made, a probe opens a
// connection of its own; if that gets no answer either, the database is unavailable. Detection
// takes less than 2 s from the last answer:
//
//	heartbeatEvery + silentLooks * silenceLook + answerLimit + silenceLook
const (
	// heartbeatEvery is the time from an answer to the next heartbeat.
	heartbeatEvery = 250 * time.Millisecond
	// silenceLook is how often the driver checks for a missing answer. It counts checks instead of time, so that after
	// this process was stopped or had no processor for a while, it reads an answer that has arrived before the next check.
	silenceLook = 250 * time.Millisecond
	// silentLooks is the number of checks after which another connection is tried, and connectLooks the same for a
	// connection that is being made, which takes several exchanges.
	silentLooks  = 2
	connectLooks = 4
	// answerLimit is the time limit for the other connection, if Options.AnswerLimit is 0.
	answerLimit = 500 * time.Millisecond
	// heartbeatLimit is how long the owner's connection may be silent while the database answers other connections, before
	// it is closed.
	heartbeatLimit = 10 * time.Second
)

// errSilent is the cause of an outage in which the database does not answer.
var errSilent = errors.New("PostgreSQL accepts connections but does not respond")

// A heartbeat is a query that waits for its answer.
type heartbeat struct{ asked atomic.Int64 } // in Unix nanoseconds; 0: none

func (h *heartbeat) ask()    { h.asked.Store(time.Now().UnixNano()) }
func (h *heartbeat) answer() { h.asked.Store(0) }

// A reach is a period in which the database answers: its context ends when the database is found to be silent. A new reach
// begins after the outage.
type reach struct {
	ctx context.Context //nolint:containedctx // it is the time itself
	end context.CancelCauseFunc
}

func newReach() *reach {
	r := &reach{}
	r.ctx, r.end = context.WithCancelCause(context.Background())
	return r
}

// silent reports whether the database was found to be silent.
func (o *outage) silent() bool { return o.reach.Load().ctx.Err() != nil }

// fallSilent begins an outage because of silence, and reports whether the outage is new.
func (o *outage) fallSilent(since time.Time) (begun bool) {
	begun = o.beginAt(since, errSilent)
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.on.Load() { // the outage is not over yet
		o.reach.Load().end(errSilent)
	}
	return begun
}

// answering returns a context that ends, with errSilent as its cause, while the database does not answer.
func (db *DB) answering(ctx context.Context) (_ context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	undo := context.AfterFunc(db.outage.reach.Load().ctx, func() { cancel(errSilent) })
	return ctx, func() {
		undo()
		cancel(nil)
	}
}

// isSilent reports whether a context of answering ended because the database does not answer.
func isSilent(ctx context.Context) bool { return errors.Is(context.Cause(ctx), errSilent) }

// beat waits for unrequested messages of the server, such as its shutdown, and then sends a heartbeat.
func (o *owner) beat(ctx context.Context) error {
	err := within(ctx, heartbeatEvery, func(ctx context.Context) error {
		_, err := o.conn.WaitForNotification(ctx)
		return err
	})
	if err != nil && (ctx.Err() != nil || o.conn.IsClosed()) {
		return err
	}
	o.db.heartbeat.ask()
	defer o.db.heartbeat.answer()
	return within(ctx, heartbeatLimit, o.conn.Ping)
}

// A missingAnswer is an answer that is waited for, and the number of checks so far.
type missingAnswer struct {
	what  int64 // identifies the answer; 0: none
	looks int
}

// look counts a check, and starts from the beginning for a new answer.
func (m *missingAnswer) look(what int64) {
	if what != m.what {
		*m = missingAnswer{what: what}
	}
	if what != 0 {
		m.looks++
	}
}

// listen checks for missing answers until the database is closed.
func (db *DB) listen() {
	ticker := time.NewTicker(silenceLook)
	defer ticker.Stop()
	var asked, connecting missingAnswer
	for db.awaitTick(ticker) {
		asked.look(db.heartbeat.asked.Load())
		connecting.look(db.connecting())
		if db.outage.silent() || asked.looks < silentLooks && connecting.looks < connectLooks || db.answers() {
			continue
		}
		if !db.awaitTick(ticker) {
			return
		}
		switch {
		case asked.looks >= silentLooks && asked.what == db.heartbeat.asked.Load():
			db.silence(time.Unix(0, asked.what))
		case connecting.looks >= connectLooks && connecting.what == db.connecting():
			db.silence(time.Now().Add(-time.Duration(connecting.looks)*silenceLook - db.options.AnswerLimit))
		}
	}
}

func (db *DB) awaitTick(ticker *time.Ticker) bool {
	select {
	case <-ticker.C:
		return true
	case <-db.closing:
		return false
	}
}

// primary lists the pools of connections to the primary.
func (db *DB) primary() []*pgxpool.Pool {
	pools := []*pgxpool.Pool{db.recording, db.control, db.reading}
	if db.settling != nil {
		pools = append(pools, db.settling)
	}
	return pools
}

// connecting returns an identifier for a connection attempt that is in progress: the number of connections made so far
// plus one, which stays the same until a connection succeeds. It returns 0 if no attempt is in progress.
func (db *DB) connecting() int64 {
	for _, pool := range db.primary() {
		if pool.Stat().ConstructingConns() > 0 {
			return db.connected.Load() + 1
		}
	}
	return 0
}

// answers reports whether the database answers a new connection, even if it refuses it.
func (db *DB) answers() bool {
	err := db.connectFor(db.options.AnswerLimit)
	if err == nil {
		return true
	}
	timeout, ok := errors.AsType[interface {
		error
		Timeout() bool
	}](err)
	return !errors.Is(err, context.DeadlineExceeded) && (!ok || !timeout.Timeout())
}

// silence begins an outage of a database that does not answer. Readers get an error at once,
// and their connections are closed: some networks never restore a connection that lost packets.
func (db *DB) silence(since time.Time) {
	if db.outage.fallSilent(since) {
		db.later(db.probe)
	}
	for _, pool := range db.primary() {
		pool.Reset()
	}
}

// connectFor makes a connection only to check that the database answers.
func (db *DB) connectFor(limit time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	conn, err := pgx.ConnectConfig(ctx, db.reading.Config().ConnConfig)
	if err == nil {
		_ = conn.Close(ctx) // it was only a check
	}
	return err
}

// A cancelHandler asks the server to cancel a statement whose caller is gone. It does not ask a silent server.
type cancelHandler struct {
	pgconn.CancelRequestContextWatcherHandler
	cut bool
}

var _ ctxwatch.Handler = (*cancelHandler)(nil)

// HandleCancel is called when the context of a statement ends.
func (h *cancelHandler) HandleCancel(ctx context.Context) {
	if h.cut = isSilent(ctx); h.cut {
		_ = h.Conn.Conn().SetDeadline(time.Now()) // if this fails, the connection is closed
		return
	}
	h.CancelRequestContextWatcherHandler.HandleCancel(ctx)
}

// HandleUnwatchAfterCancel is called when the statement has ended.
func (h *cancelHandler) HandleUnwatchAfterCancel() {
	if h.cut {
		_ = h.Conn.Conn().SetDeadline(time.Time{}) // as above
		return
	}
	h.CancelRequestContextWatcherHandler.HandleUnwatchAfterCancel()
}
