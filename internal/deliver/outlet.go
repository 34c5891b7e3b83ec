package deliver

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/kit"
)

// Settings are what may change while an outlet runs.
type Settings struct {
	Driver      fanfare.Driver
	Connections int        // at most, at the same time
	Rate        rate.Limit // messages per second; rate.Inf for no limit
	Retry       Retry
	SendTimeout time.Duration // of the driver, for one message
	IdleTimeout time.Duration // after which a connection without work is closed
}

// Options are the parts that an outlet works with.
type Options struct {
	Channel  uint16
	Name     string // service/channel, for logs
	Gate     Gate
	Recorder Recorder
	Clock    kit.Clock
	Logger   *slog.Logger
}

// maxQueued is how many jobs of one lane may wait in an outlet; Room blocks
// while there are more.
const maxQueued = 2 * fanfare.MaxBatch

// Outlet is one channel's way out.
type Outlet struct {
	options Options
	limiter *rate.Limiter

	mu          sync.Mutex
	settings    Settings
	lanes       [len(fanfare.Lanes)]jobQueue
	room        chan struct{} // closed and made anew whenever jobs leave the queue
	connections int
	idle        int // connections that wait for a job
	failures    int // connections lost in a row without a message sent
	lastError   string
	lastErrorAt time.Time
	blockedTill time.Time // no new connection before that
	unblock     *time.Timer
	wake        chan struct{}
	pacing      chan struct{}     // holds a token while a connection waits for the rate
	wired       map[*Job]struct{} // released, not yet reported
	taken       int64             // messages that the next hop took, since the start

	ctx      context.Context
	stop     context.CancelFunc
	renew    context.CancelFunc // ends the connections of the settings in force
	renewCtx context.Context
	running  sync.WaitGroup
}

// NewOutlet returns an outlet that sends until Stop.
func NewOutlet(options Options, settings Settings) *Outlet {
	ctx, stop := context.WithCancel(context.Background())
	o := &Outlet{
		options: options, settings: settings, limiter: rate.NewLimiter(settings.Rate, burst(settings.Rate)),
		room: make(chan struct{}), wake: make(chan struct{}, 1024), pacing: make(chan struct{}, 1), wired: map[*Job]struct{}{},
		ctx: ctx, stop: stop,
	}
	o.renewCtx, o.renew = context.WithCancel(ctx)
	return o
}

// burst lets a limiter catch up over at most a tenth of a second.
func burst(limit rate.Limit) int { return max(1, int(min(float64(limit)/10, 1e6))) }

// Reconfigure puts new settings in force: connections of the old ones finish
// their message and close.
func (o *Outlet) Reconfigure(settings Settings) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.settings = settings
	o.limiter.SetLimit(settings.Rate)
	o.limiter.SetBurst(burst(settings.Rate))
	o.failures, o.blockedTill = 0, time.Time{}
	o.renew()
	o.renewCtx, o.renew = context.WithCancel(o.ctx)
	o.spawn()
}

// Stop lets each connection finish the message whose body was begun, closes
// them, and gives the rest of all batches back as jobs to be done again.
func (o *Outlet) Stop() {
	o.mu.Lock()
	o.stop() // from here on nothing is spawned
	if o.unblock != nil {
		o.unblock.Stop()
	}
	o.mu.Unlock()
	o.running.Wait()
	o.mu.Lock()
	var finished []*Batch
	for lane := range o.lanes {
		for job := o.lanes[lane].pop(); job != nil; job = o.lanes[lane].pop() {
			finished = o.leave(job, Go, finished)
		}
	}
	o.mu.Unlock()
	finish(finished)
}

// Room blocks until the outlet can take a batch of a lane. It returns an error
// when ctx ends or the outlet is stopped.
func (o *Outlet) Room(ctx context.Context, lane fanfare.Lane) error {
	for {
		o.mu.Lock()
		waiting, room := o.lanes[lane].len(), o.room
		o.mu.Unlock()
		if waiting < maxQueued-fanfare.MaxBatch {
			return nil
		}
		select {
		case <-room:
		case <-ctx.Done():
			return ctx.Err()
		case <-o.ctx.Done():
			return o.ctx.Err()
		}
	}
}

// Submit hands a batch over. Its jobs leave in order, each lane before the less
// urgent ones. After Stop they all go back.
func (o *Outlet) Submit(batch *Batch) {
	if len(batch.Jobs) == 0 {
		batch.Finish(0, 0)
		return
	}
	o.mu.Lock()
	batch.left = len(batch.Jobs)
	stopped := o.ctx.Err() != nil
	for i := range batch.Jobs {
		job := &batch.Jobs[i]
		job.batch = batch
		job.Letter.Work = job
		if stopped {
			o.leave(job, Go, nil)
			continue
		}
		o.lanes[batch.Lane].push(job)
	}
	idle := o.idle
	o.spawn()
	o.mu.Unlock()
	if stopped {
		finish([]*Batch{batch})
		return
	}
	for range min(idle, len(batch.Jobs)) {
		o.signal()
	}
}

func (o *Outlet) signal() {
	select {
	case o.wake <- struct{}{}:
	default: // more tokens than connections wait already
	}
}

// spawn starts as many connections as the queue can use. The caller holds mu.
func (o *Outlet) spawn() {
	if o.ctx.Err() != nil {
		return
	}
	waiting := 0
	for lane := range o.lanes {
		waiting += o.lanes[lane].len()
	}
	wanted := min(waiting-o.idle, o.settings.Connections-o.connections)
	if wanted <= 0 {
		return
	}
	if pause := o.blockedTill.Sub(o.options.Clock.Now()); pause > 0 {
		if o.unblock == nil {
			o.unblock = time.AfterFunc(pause, func() {
				o.mu.Lock()
				defer o.mu.Unlock()
				o.unblock = nil
				o.spawn()
			})
		}
		return
	}
	if o.failures > 0 {
		wanted = 1 // one scout while the relay is in doubt
		if o.connections > 0 {
			return
		}
	}
	for range wanted {
		o.connections++
		driver, ctx := o.settings.Driver, o.renewCtx
		o.running.Go(func() { o.connect(ctx, driver) })
	}
}

// connect runs one connection to its end.
func (o *Outlet) connect(ctx context.Context, driver fanfare.Driver) {
	d := &desk{outlet: o}
	err := serve(ctx, driver, d)
	d.abandon(err)
	o.mu.Lock()
	defer o.mu.Unlock()
	o.connections--
	if err != nil && ctx.Err() == nil {
		o.lost(err)
	}
	o.spawn()
}

func serve(ctx context.Context, driver fanfare.Driver, desk fanfare.Desk) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("driver panicked: %v", p)
		}
	}()
	return driver.Serve(ctx, desk)
}

const (
	firstPause   = 50 * time.Millisecond
	longestPause = 30 * time.Second
)

// lost counts a broken connection. The caller holds mu.
func (o *Outlet) lost(err error) {
	now := o.options.Clock.Now()
	o.lastError, o.lastErrorAt = err.Error(), now
	if now.Before(o.blockedTill) {
		return // all connections are lost together when a relay goes: that is one failure
	}
	o.failures++
	if o.failures == 1 {
		o.options.Logger.Warn("connection lost", "channel", o.options.Name, "error", err)
		return
	}
	pause := min(longestPause, firstPause<<min(o.failures-2, 10))
	pause = pause/2 + time.Duration(rand.Int64N(int64(pause/2)+1))
	o.blockedTill = now.Add(pause)
}

// Status is how an outlet is doing.
type Status struct {
	Connections int
	Queued      int
	OnTheWire   int
	Taken       int64  // messages that the next hop took, since the start
	LastError   string // empty while all is well
	LastErrorAt time.Time
}

// Status returns how the outlet is doing.
func (o *Outlet) Status() Status {
	o.mu.Lock()
	defer o.mu.Unlock()
	s := Status{Connections: o.connections, OnTheWire: len(o.wired), Taken: o.taken}
	for lane := range o.lanes {
		s.Queued += o.lanes[lane].len()
	}
	if o.failures > 0 {
		s.LastError, s.LastErrorAt = o.lastError, o.lastErrorAt
	}
	return s
}

// AwaitOff returns when no message for a subscription is on the wire. The
// caller has made the gate refuse it before.
func (o *Outlet) AwaitOff(ctx context.Context, subscription fanfare.Place) error {
	for _, off := range o.watch(subscription) {
		select {
		case <-off:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

func (o *Outlet) watch(subscription fanfare.Place) []chan struct{} {
	o.mu.Lock()
	defer o.mu.Unlock()
	var offs []chan struct{}
	for job := range o.wired {
		for _, place := range job.Subscriptions {
			if place == subscription {
				if job.offWire == nil {
					job.offWire = make(chan struct{})
				}
				offs = append(offs, job.offWire)
			}
		}
	}
	return offs
}
