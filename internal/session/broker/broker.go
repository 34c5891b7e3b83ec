// Package broker passes the requests of clients to the instances of workers, and the responses back. It speaks the protocol
// of package frame over connections that it is given, and keeps durable sessions in a session.Log. The node that leads has the
// only broker of a cluster.
//
// State. A pool for each worker has a mutex, which guards its sessions, their clients and queues, and its instances. Broker.mu
// guards the maps that lead to them; it may be taken while a pool is locked, not the other way round. A whole frame is handled
// per lock. One goroutine for each connection reads, another one writes all that is pending.
//
// Durable sessions. The committer (commit.go) writes the pending entries of all sessions in groups. Requests are dispatched,
// and responses are sent, after their commit. A request ends when its response is kept.
//
// Failure. The tasks of a lost instance return to the front of their queues. After a restart the state of a durable session is
// its requests without its responses (restore.go); interactive sessions are lost. A session that another broker has taken over
// is given up at once.
package broker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/clock"
	"fanfare.dev/fanfare/internal/session"
	"fanfare.dev/fanfare/internal/store/retry"
)

// The bounds of a broker.
const (
	maxSessions    = 10_000 // that are open, per service
	maxClients     = 1_000  // per session
	maxInstances   = 10_000 // per worker
	maxEnded       = 10_000 // records of ended sessions in memory
	endedRetention = 7 * 24 * time.Hour
)

// heartbeatSeconds is how often connections send a ping; the connections themselves do so.
const heartbeatSeconds = 20

// Options are what a broker needs.
type Options struct {
	Log        session.Log
	Definition func(service, worker string) (session.Definition, bool)
	Clock      clock.Clock
	Logger     *slog.Logger
}

// A Broker dispatches requests. It is safe for concurrent use.
type Broker struct {
	Options
	ctx    context.Context // ends when the broker has stopped
	cancel context.CancelFunc
	loops  sync.WaitGroup
	conns  sync.WaitGroup
	sooner chan struct{} // wakes the loop of limits: a deadline is earlier than it knows
	hash   hashes

	expiring atomic.Bool // sessions that have reached a limit are being ended

	opening chan struct{} // held while a session with a name is opened

	mu       sync.Mutex
	stopping bool
	pools    map[poolKey]*pool
	sessions map[uint64]*openSession
	names    map[nameKey]*openSession
	open     map[string]int // sessions per service, those that are being created included
	ended    map[uint64]session.Record
	endings  []uint64          // keys of ended, the oldest first
	moved    map[uint64]string // sessions that another broker has taken over, with their services

	committer committer
}

type poolKey struct{ service, worker string }

type nameKey struct{ service, name string }

// New returns a broker that has taken over the durable sessions of the log. Interactive sessions that are open there had
// another broker, and are lost.
func New(ctx context.Context, o Options) (*Broker, error) {
	b := &Broker{Options: o, sooner: make(chan struct{}, 1), hash: newHashes(), opening: make(chan struct{}, 1),
		pools: map[poolKey]*pool{}, sessions: map[uint64]*openSession{}, names: map[nameKey]*openSession{}, open: map[string]int{}, ended: map[uint64]session.Record{}, moved: map[uint64]string{}}
	b.ctx, b.cancel = context.WithCancel(context.WithoutCancel(ctx))
	b.committer.init()
	if err := b.restore(ctx); err != nil {
		b.cancel()
		b.loops.Wait()
		return nil, err
	}
	b.loops.Go(b.commitLoop)
	b.loops.Go(b.limitLoop)
	return b, nil
}

// Stop closes all connections so that their peers connect again, and ends the broker. Each request that was confirmed and each
// response that was sent is in the log. It may be called twice.
func (b *Broker) Stop(ctx context.Context) error {
	b.mu.Lock()
	first := !b.stopping
	b.stopping = true
	b.mu.Unlock()
	if !first {
		b.loops.Wait()
		return nil
	}
	for _, p := range b.allPools() {
		p.mu.Lock()
		for _, s := range p.sessions {
			for _, c := range s.clients {
				if c.conn != nil {
					p.close(&c.conn.link, session.CloseGoingAway, "the broker stops")
				}
			}
		}
		for _, i := range p.instances {
			p.close(&i.link, session.CloseGoingAway, "the broker stops")
		}
		p.finish()
		p.mu.Unlock()
	}
	closed := make(chan struct{})
	go func() { b.conns.Wait(); close(closed) }()
	select {
	case <-closed:
	case <-ctx.Done():
	}
	b.cancel()
	b.loops.Wait()
	<-closed
	return b.loseInteractive(ctx)
}

// loseInteractive records the end of the interactive sessions.
func (b *Broker) loseInteractive(ctx context.Context) error {
	for _, p := range b.allPools() {
		p.mu.Lock()
		var records []session.Record
		for _, s := range p.sessions {
			if !s.durable {
				records = append(records, s.record)
			}
		}
		p.mu.Unlock()
		for _, r := range records {
			r.State, r.Reason, r.ClosedAt = session.Lost, "the broker stopped", b.Clock.Now()
			if err := b.Log.Update(ctx, &r); err != nil {
				return err
			}
		}
	}
	return nil
}

func (b *Broker) allPools() []*pool {
	b.mu.Lock()
	defer b.mu.Unlock()
	pools := make([]*pool, 0, len(b.pools))
	for _, p := range b.pools {
		pools = append(pools, p)
	}
	return pools
}

// pool returns the pool of a worker, and creates it if the worker is registered.
func (b *Broker) pool(service, worker string) (*pool, error) {
	d, known := b.Definition(service, worker)
	b.mu.Lock()
	defer b.mu.Unlock()
	key := poolKey{service, worker}
	if !known {
		return nil, &fanfare.Error{Code: fanfare.NotFound, Message: fmt.Sprintf("the service has no worker %q", worker),
			Hint: "register the worker in the section `workers` of the configuration document, then apply the document"}
	}
	p := b.pools[key]
	if p == nil {
		p = newPool(b, key, d)
		b.pools[key] = p
	}
	return p, nil
}

// ID returns the id of the session with a number.
func ID(number uint64) string { return "ses-" + strconv.FormatUint(number, 10) }

func numberOf(id string) (uint64, bool) {
	digits, is := strings.CutPrefix(id, "ses-")
	n, err := strconv.ParseUint(digits, 10, 64)
	return n, is && err == nil && digits == strconv.FormatUint(n, 10)
}

// complete checks options and sets their defaults.
func complete(o session.Options) (session.Options, error) {
	invalid := func(pointer, message string) (session.Options, error) {
		return o, &fanfare.Error{Code: fanfare.Invalid, Pointer: pointer, Message: message, Hint: "correct the option, or omit it to use its default"}
	}
	o.Kind = cmp.Or(o.Kind, session.Interactive)
	idle := session.InteractiveIdleTimeout
	if o.Kind == session.Durable {
		idle = session.DurableIdleTimeout
	}
	o.Priority = cmp.Or(o.Priority, session.DefaultPriority)
	if o.Resends == -1 {
		o.Resends = session.DefaultResends
	}
	o.IdleTimeout = cmp.Or(o.IdleTimeout, idle)
	o.TotalTimeout = cmp.Or(o.TotalTimeout, session.MaxTotalTimeout)
	switch {
	case o.Kind != session.Interactive && o.Kind != session.Durable:
		return invalid("/kind", fmt.Sprintf("the kind is %q, but must be interactive or durable", o.Kind))
	case o.Priority < 1 || o.Priority > session.MaxPriority:
		return invalid("/priority", fmt.Sprintf("the priority is %d, but must be between 1 and %d", o.Priority, session.MaxPriority))
	case o.Resends < 0 || o.Resends > session.MaxResends:
		return invalid("/resends", fmt.Sprintf("resends is %d, but must be between 0 and %d", o.Resends, session.MaxResends))
	case o.MinInstances < 0 || o.MinInstances > maxInstances:
		return invalid("/min_instances", fmt.Sprintf("min_instances is %d, but must be between 0 and %d", o.MinInstances, maxInstances))
	case o.MaxInstances < 0 || o.MaxInstances > maxInstances:
		return invalid("/max_instances", fmt.Sprintf("max_instances is %d, but must be between 0 (no limit) and %d", o.MaxInstances, maxInstances))
	case o.MaxInstances > 0 && o.MinInstances > o.MaxInstances:
		return invalid("/min_instances", fmt.Sprintf("min_instances is %d, but max_instances is only %d", o.MinInstances, o.MaxInstances))
	case o.IdleTimeout < 0 || o.IdleTimeout > session.MaxTotalTimeout:
		return invalid("/idle_timeout", fmt.Sprintf("the idle timeout is %s, but must be between 0 and %s", o.IdleTimeout, session.MaxTotalTimeout))
	case o.TotalTimeout < 0 || o.TotalTimeout > session.MaxTotalTimeout:
		return invalid("/total_timeout", fmt.Sprintf("the total timeout is %s, but must be between 0 and %s", o.TotalTimeout, session.MaxTotalTimeout))
	}
	return o, nil
}

// Open opens a session. If an open session of the service has the name already, it is returned if its options are the same, and
// otherwise the error is a Conflict.
func (b *Broker) Open(ctx context.Context, service string, o session.Options) (session.Info, error) {
	p, err := b.pool(service, o.Worker)
	if err != nil {
		return session.Info{}, fanfare.Below("/worker", err)
	}
	if o, err = complete(o); err != nil {
		return session.Info{}, err
	}
	if o.Name != "" {
		select {
		case b.opening <- struct{}{}:
			defer func() { <-b.opening }()
		case <-ctx.Done():
			return session.Info{}, ctx.Err()
		}
	}
	s, err := b.reserve(service, &o)
	if err != nil {
		return session.Info{}, err
	}
	if s == nil {
		record := session.Record{Service: service, Options: o, State: session.Open, OpenedAt: b.Clock.Now(), Epoch: 1}
		if err := b.Log.Create(ctx, &record); err != nil {
			b.mu.Lock()
			b.open[service]--
			b.mu.Unlock()
			return session.Info{}, err
		}
		s = b.add(p, record)
	}
	s.p.mu.Lock()
	defer s.p.mu.Unlock()
	return s.info(), nil
}

// reserve returns the open session with the name of the options, or counts a new one.
func (b *Broker) reserve(service string, o *session.Options) (*openSession, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.stopping {
		return nil, errStopping
	}
	if len(b.moved) > 0 { // the other broker would not know the session
		return nil, errMoved
	}
	if s := b.names[nameKey{service, o.Name}]; s != nil && o.Name != "" {
		same := s.record.Options // never changes
		same.OpenedBy = o.OpenedBy
		if same != *o {
			return nil, &fanfare.Error{Code: fanfare.Conflict, Pointer: "/name", Message: fmt.Sprintf("session %s has the name %q and different options", s.id, o.Name),
				Hint: "use the same options, use another name, or close that session first"}
		}
		return s, nil
	}
	if b.open[service] >= maxSessions {
		return nil, &fanfare.Error{Code: fanfare.Conflict, Message: fmt.Sprintf("the service has %d open sessions, which is the maximum", maxSessions),
			Hint: "close sessions that are no longer needed, or let several clients share a session"}
	}
	b.open[service]++
	return nil, nil
}

// The errors of a broker that cannot serve a session any more. A client that connects again reaches the next broker.
var (
	errStopping = &fanfare.Error{Code: fanfare.Unavailable, Message: "the broker is stopping", Hint: "try again in a moment", RetryAfter: time.Second}
	errMoved    = &fanfare.Error{Code: fanfare.Unavailable, Message: "another server has taken over the sessions", Hint: "try again in a moment", RetryAfter: time.Second}
)

// stops reports whether Stop was called. The caller holds the mutex of a pool: a connection that it adds now is closed by Stop.
func (b *Broker) stops() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.stopping
}

// add makes a session of a record. Its service has been counted in open.
func (b *Broker) add(p *pool, record session.Record) *openSession {
	s := newSession(p, record)
	p.mu.Lock()
	p.sessions[record.Number] = s
	p.mu.Unlock()
	b.mu.Lock()
	b.sessions[record.Number] = s
	if record.Options.Name != "" {
		b.names[nameKey{record.Service, record.Options.Name}] = s
	}
	b.mu.Unlock()
	return s
}

// remember keeps the record of an ended session.
func (b *Broker) remember(record session.Record) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, known := b.ended[record.Number]; !known {
		b.endings = append(b.endings, record.Number)
	}
	b.ended[record.Number] = record
	if len(b.endings) > maxEnded {
		delete(b.ended, b.endings[0])
		b.endings = b.endings[1:]
	}
}

// find returns an open session, or the record of an ended one.
func (b *Broker) find(service, id string) (*openSession, *session.Record, error) {
	number, valid := numberOf(id)
	b.mu.Lock()
	defer b.mu.Unlock()
	if s := b.sessions[number]; valid && s != nil && s.record.Service == service {
		return s, nil, nil
	}
	if r, known := b.ended[number]; valid && known && r.Service == service {
		return nil, &r, nil
	}
	if of, is := b.moved[number]; valid && is && of == service {
		return nil, nil, errMoved
	}
	return nil, nil, &fanfare.Error{Code: fanfare.NotFound, Message: fmt.Sprintf("the service has no session %q", id),
		Hint: "run `fanfare session list` to see the sessions; they are removed some time after they have ended"}
}

// Session returns a session, open or ended.
func (b *Broker) Session(service, id string) (session.Info, error) {
	s, record, err := b.find(service, id)
	if err != nil {
		return session.Info{}, err
	}
	if s == nil {
		return session.Info{Record: *record, ID: ID(record.Number)}, nil
	}
	s.p.mu.Lock()
	defer s.p.mu.Unlock()
	return s.info(), nil
}

// Sessions returns the sessions of a service by number: the open ones, and those that ended not long ago.
func (b *Broker) Sessions(service string) []session.Info {
	b.mu.Lock()
	var open []*openSession
	var infos []session.Info
	for _, s := range b.sessions {
		if s.record.Service == service {
			open = append(open, s)
		}
	}
	for _, r := range b.ended {
		if r.Service == service {
			infos = append(infos, session.Info{Record: r, ID: ID(r.Number)})
		}
	}
	b.mu.Unlock()
	for _, s := range open {
		s.p.mu.Lock()
		infos = append(infos, s.info())
		s.p.mu.Unlock()
	}
	slices.SortFunc(infos, func(x, y session.Info) int { return cmp.Compare(x.Number, y.Number) })
	return infos
}

// End ends a session: its clients are disconnected, and its tasks are cancelled. If purge is set, the data of the session are
// removed, also if it has ended before.
func (b *Broker) End(ctx context.Context, service, id string, purge bool, reason string) error {
	s, record, err := b.find(service, id)
	if err != nil {
		return err
	}
	if s != nil {
		s.p.mu.Lock()
		ending := s.record
		s.p.mu.Unlock()
		record = &ending
		record.State, record.Reason, record.ClosedAt = session.Ended, reason, b.Clock.Now()
		if err := retry.WhileAway(ctx, func() error { return b.Log.Update(ctx, record) }); err != nil {
			return err
		}
		b.forget(s, *record, session.CloseEnded)
	}
	if !purge || record.State == session.Purged {
		return nil
	}
	// No group of the committer may write to the session once its data are removed.
	if err := b.committer.pause(ctx); err != nil {
		return err
	}
	defer b.committer.resume()
	if err := retry.WhileAway(ctx, func() error { return b.Log.Purge(ctx, record.Number) }); err != nil {
		return err
	}
	record.State = session.Purged
	b.remember(*record)
	return nil
}

// EndWithoutInstance ends an interactive session if its worker has no instance that takes requests, and reports whether the
// session has ended. An instance that connects later gets none of its requests.
func (b *Broker) EndWithoutInstance(ctx context.Context, service, id, reason string) (ended bool, err error) {
	s, _, err := b.find(service, id)
	if err != nil {
		return false, err
	}
	if s == nil {
		return true, nil
	}
	p := s.p
	p.mu.Lock()
	if p.defined && p.connected() > 0 {
		p.mu.Unlock()
		return false, nil
	}
	if s.gone {
		p.mu.Unlock()
		return true, nil
	}
	record := s.record
	record.State, record.Reason, record.ClosedAt = session.Ended, reason, b.Clock.Now()
	b.release(s, record, session.CloseEnded)
	// If this fails, the next start ends the session: it is an interactive one.
	return true, retry.WhileAway(ctx, func() error { return b.Log.Update(ctx, &record) })
}

// forget removes a session from memory. The code closes the connections of its clients.
func (b *Broker) forget(s *openSession, record session.Record, code int) {
	s.p.mu.Lock()
	if s.gone {
		s.p.mu.Unlock()
		return
	}
	b.release(s, record, code)
}

// release is forget for a caller that holds the mutex of the pool, which it unlocks.
func (b *Broker) release(s *openSession, record session.Record, code int) {
	p := s.p
	s.record.State, s.record.Reason, s.record.ClosedAt = record.State, record.Reason, record.ClosedAt // find reads the service without the mutex
	p.drop(s, code)
	p.dispatch(b.now())
	p.finish()
	p.mu.Unlock()
	b.mu.Lock()
	delete(b.sessions, record.Number)
	if n := (nameKey{record.Service, record.Options.Name}); b.names[n] == s {
		delete(b.names, n)
	}
	b.open[record.Service]--
	if code != session.CloseEnded {
		b.moved[record.Number] = record.Service
	}
	b.mu.Unlock()
	if code == session.CloseEnded {
		b.remember(record)
	}
}

// fence gives up a session that another broker has taken over.
func (b *Broker) fence(s *openSession) {
	b.Logger.Warn("another broker has taken over a session; this broker releases it", "session", s.id)
	s.p.mu.Lock()
	record := s.record
	s.p.mu.Unlock()
	b.forget(s, record, session.CloseGoingAway)
}

func (b *Broker) now() int64 { return micros(b.Clock.Now()) }

// isFenced reports whether an error of the log means that another broker has the session.
func isFenced(err error) bool { return errors.Is(err, session.ErrFenced) }
