package deliver

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/clock"
)

// Settings are what may change while an outlet runs.
type Settings struct {
	Relays       []RelaySettings // the next hops, at least one
	Direct       bool            // each connection goes to the destination itself, and not to a relay
	Connections  int             // at most, at the same time, over all relays
	Adapt        bool            // to the answers: fewer at a time, and at a lower rate, while they ask for less
	Rate         rate.Limit      // messages per second; rate.Inf for no limit
	Multicast    int             // recipients at most of what its drivers send as one message; 0 and 1: each by itself
	Budgets      []Budget        // shared with other outlets
	Destinations Destinations
	Reserve      Reserve
	Retry        Retry
	RetryBy      map[fanfare.Class]Retry // instead of Retry for answers of a class
	SendTimeout  time.Duration           // of the driver, for one message
	IdleTimeout  time.Duration           // after which a connection without work is closed
}

// Options are the parts that an outlet works with.
type Options struct {
	Channel        uint16
	Name           string // service/channel, for logs
	Gate           Gate
	BroadcastRates BroadcastRates // nil: broadcasts have no rates of their own
	Recorder       Recorder
	Replies        Replies // nil: no answer has a class
	Clock          clock.Clock
	Logger         *slog.Logger
	Jitter         func() float64 // from 0 to 1; nil takes a random one
}

// Sender is one channel's way out.
type Sender struct {
	options Options

	mu              sync.Mutex
	settings        *Settings // never changed, but replaced
	waiting         waiting
	rateLimited     rateLimitedJobs
	limits          limits
	failover        failoverJobs
	relays          relays
	busy            busy
	weightsAdjusted time.Time     // when weights were moved last
	pacing          chan struct{} // holds a token while a connection waits for the limits
	hurry           chan struct{} // wakes that one
	pacer           *pacing       // what that one waits for; nil: there is none
	inFlight        inFlightJobs
	accepted        int64           // messages that the next hop took, since the start
	postponed       []postponedJob  // on their way to the recorder
	recording       []chan struct{} // each closed when what it stands for is recorded
	timer           *time.Timer     // rings when something that limits hold up may go on
	timerAt         time.Time       // zero: it is not set

	connections int // open now, those of relays that are no more among them

	ctx     context.Context
	stop    context.CancelFunc
	running sync.WaitGroup
}

// NewSender returns an outlet that sends until Stop.
func NewSender(options Options, settings Settings) *Sender {
	ctx, stop := context.WithCancel(context.Background())
	if options.Jitter == nil {
		options.Jitter = rand.Float64
	}
	o := &Sender{
		options: options, settings: &settings,
		waiting: newWaiting(), weightsAdjusted: options.Clock.Now(), pacing: make(chan struct{}, 1), hurry: make(chan struct{}, 1),
		ctx: ctx, stop: stop,
	}
	o.limits.configure(o.settings, options.Clock.Now())
	o.configure(settings.Relays)
	return o
}

// Reconfigure puts new settings in force: connections of the old ones finish
// their message and close.
func (o *Sender) Reconfigure(settings Settings) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.settings = &settings
	o.limits.configure(o.settings, o.options.Clock.Now())
	o.hurryUp()
	o.configure(settings.Relays)
	o.openConnections()
}

// Stop lets each connection finish the message whose body was begun, closes
// them, and gives the rest of all batches back as jobs to be done again.
func (o *Sender) Stop() {
	o.mu.Lock()
	o.stop() // from here on nothing is spawned
	for _, r := range o.relays {
		r.stopTimer()
	}
	if o.timer != nil {
		o.timer.Stop()
	}
	if o.rateLimited.timer != nil {
		o.rateLimited.timer.Stop()
	}
	o.mu.Unlock()
	o.running.Wait()
	o.mu.Lock()
	var finished []*Batch
	for _, job := range o.remove(func(*Job) bool { return true }) {
		finished = o.leaveUnsettled(job, Go, finished)
	}
	o.mu.Unlock()
	finish(finished)
}

// HasRoom reports whether the outlet can take a batch of a flow now.
func (o *Sender) HasRoom(lane fanfare.Lane, flow Flow) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.waiting.roomFor(lane, flow) && o.rateLimited.lenOf(flow) < fanfare.MaxBatch
}

// RoomSignal returns a channel that is closed when there may be room that there is
// not at this moment.
func (o *Sender) RoomSignal() <-chan struct{} {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.waiting.room
}

// Submit hands a batch over. Its jobs leave in order, in turn with those of the
// lane's other flows, and each lane before the less urgent ones. After Stop they
// all go back.
func (o *Sender) Submit(batch *Batch) {
	if len(batch.Jobs) == 0 {
		batch.Finish(0, 0)
		return
	}
	o.mu.Lock()
	batch.unsettled = len(batch.Jobs)
	stopped := o.ctx.Err() != nil
	for i := range batch.Jobs {
		job := &batch.Jobs[i]
		job.batch = batch
		job.Message.Owner = job
		if stopped {
			o.leaveUnsettled(job, Go, nil)
			continue
		}
		o.waiting.push(job)
	}
	o.hurryUpFor(batch.Lane)
	o.openConnections()
	for range min(o.relays.idle(), len(batch.Jobs)) {
		o.wakeOne()
	}
	o.mu.Unlock()
	if stopped {
		finish([]*Batch{batch})
	}
}

// AwaitInFlight returns when no message for a subscription is on the wire. The
// caller has made the gate refuse it before.
func (o *Sender) AwaitInFlight(ctx context.Context, subscription fanfare.RowID) error {
	for _, off := range o.inFlightOf(subscription) {
		select {
		case <-off:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

func (o *Sender) inFlightOf(subscription fanfare.RowID) []chan struct{} {
	o.mu.Lock()
	defer o.mu.Unlock()
	var offs []chan struct{}
	for _, job := range o.inFlight {
		for _, place := range job.Subscriptions {
			if place == subscription {
				if job.landed == nil {
					job.landed = make(chan struct{})
				}
				offs = append(offs, job.landed)
			}
		}
	}
	return offs
}

// RecheckGate takes out of the queue what the gate does not let pass any more, so that
// what is paused or cancelled waits for no connection: of a slow relay all may be
// busy for long. What connections have taken is asked about before it leaves.
func (o *Sender) RecheckGate() {
	o.mu.Lock()
	var finished []*Batch
	now := o.options.Clock.Now()
	for _, job := range o.remove(func(job *Job) bool { decision, _ := o.decide(job, now); return decision != Go }) {
		if decision, why := o.decide(job, now); decision != Go {
			finished = o.settleRefused(job, decision, why, finished)
		} else {
			o.putBack(job) // resumed between the two looks
		}
	}
	o.unblock()
	o.mu.Unlock()
	finish(finished)
}

// SetRate changes how many messages may leave a second. It is in force at once,
// also for who waits for the rate of before; connections stay as they are.
func (o *Sender) SetRate(perSecond rate.Limit) {
	o.mu.Lock()
	defer o.mu.Unlock()
	settings := *o.settings
	settings.Rate = perSecond
	o.settings = &settings
	o.limits.configure(o.settings, o.options.Clock.Now())
	o.hurryUp()
}

// SetBudgets puts others in force, or tells that their limits have changed.
func (o *Sender) SetBudgets(budgets []Budget) {
	o.mu.Lock()
	defer o.mu.Unlock()
	settings := *o.settings
	settings.Budgets = budgets
	o.settings, o.limits.settings = &settings, &settings
	o.limits.closedUntil = time.Time{}
	o.hurryUp()
	o.unblock()
	o.openConnections()
}

// SuppressSubscriber takes the messages of a subscriber out of the queue and settles them as
// suppressed, without their address. It does not wait for that to be recorded,
// and does not touch what connections have taken already: the gate decides there.
func (o *Sender) SuppressSubscriber(subscriber fanfare.RowID, why string) {
	o.mu.Lock()
	var finished []*Batch
	for _, job := range o.remove(func(job *Job) bool { return job.Subscriber == subscriber }) {
		job.Message.To = ""
		finished = o.settleRefused(job, Suppress, why, finished)
	}
	o.unblock()
	o.mu.Unlock()
	finish(finished)
}
