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

// Settings are the settings that may change while a sender runs.
type Settings struct {
	Relays       []RelaySettings // the next hops, at least one
	Direct       bool            // each connection goes to the destination itself, and not to a relay
	Connections  int             // maximum over all relays
	Adapt        bool            // send less while replies ask for it: fewer messages at a time, and a lower rate
	Rate         rate.Limit      // messages per second; rate.Inf for no limit
	Multicast    int             // maximum recipients of one message; 0 and 1: each message has one recipient
	Budgets      []Budget        // shared with other senders
	Destinations Destinations
	Reserve      Reserve
	Retry        Retry
	RetryBy      map[fanfare.Class]Retry // replaces Retry for a class of replies
	SendTimeout  time.Duration           // of the driver, for one message
	IdleTimeout  time.Duration           // after which an idle connection is closed
}

// Options are the dependencies of a sender.
type Options struct {
	Channel        uint16
	Name           string // service/channel, for logs
	Gate           Gate
	BroadcastRates BroadcastRates // nil: broadcasts have no rates
	Recorder       Recorder
	Replies        Replies   // nil: no reply has a class
	NodeLease      NodeLease // nil: this server is alone
	Clock          clock.Clock
	Logger         *slog.Logger
	Jitter         func() float64 // from 0 to 1; nil: random
}

// A Sender delivers the messages of one channel.
type Sender struct {
	options Options

	mu              sync.Mutex
	settings        *Settings // replaced, never changed
	waiting         waiting
	rateLimited     rateLimitedJobs
	limits          limits
	failover        failoverJobs
	relays          relays
	busy            busy
	weightsAdjusted time.Time     // when adjustWeights last ran
	pacing          chan struct{} // holds a token while a connection waits for the limits
	hurry           chan struct{} // wakes that connection
	pacer           *pacing       // what that connection waits for; nil: there is none
	inFlight        inFlightJobs
	accepted        int64           // since the start
	wholeBatches    int             // that are delivered as a whole now
	postponed       []postponedJob  // not yet passed to the recorder
	recording       []chan struct{} // closed when the recorder has recorded them
	timer           *time.Timer     // fires when jobs that the limits hold may continue
	timerAt         time.Time       // zero: not set

	connections int // open now, including those of relays that were removed, without those of nodes that have left

	ctx     context.Context
	stop    context.CancelFunc
	running sync.WaitGroup
}

// NewSender returns a sender that runs until Stop.
func NewSender(options Options, settings Settings) *Sender {
	ctx, stop := context.WithCancel(context.Background())
	if options.Jitter == nil {
		options.Jitter = rand.Float64
	}
	s := &Sender{
		options: options, settings: &settings,
		waiting: newWaiting(), weightsAdjusted: options.Clock.Now(), pacing: make(chan struct{}, 1), hurry: make(chan struct{}, 1),
		ctx: ctx, stop: stop,
	}
	s.limits.configure(s.settings, options.Clock.Now())
	s.configure(settings.Relays)
	return s
}

// Reconfigure applies new settings. Connections under the old settings finish their message
// and close.
func (s *Sender) Reconfigure(settings Settings) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.settings = &settings
	s.limits.configure(s.settings, s.options.Clock.Now())
	s.hurryUp()
	s.configure(settings.Relays)
	s.openConnections()
}

// Stop lets each connection finish a message whose body was begun, closes the connections,
// and finishes all batches with the remaining jobs unsettled.
func (s *Sender) Stop() {
	s.mu.Lock()
	s.stop() // no connection is opened after this
	for _, r := range s.relays {
		r.stopTimer()
	}
	if s.timer != nil {
		s.timer.Stop()
	}
	if s.rateLimited.timer != nil {
		s.rateLimited.timer.Stop()
	}
	s.mu.Unlock()
	s.running.Wait()
	s.mu.Lock()
	var finished []*Batch
	for _, job := range s.remove(func(*Job) bool { return true }) {
		finished = s.leaveUnsettled(job, Go, finished)
	}
	s.mu.Unlock()
	finish(finished)
}

// HasCapacity reports whether the sender can take a batch of a flow now.
func (s *Sender) HasCapacity(lane fanfare.Lane, flow Flow) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.wholeBatches < maxWholeBatches && s.waiting.hasCapacity(lane, flow) && s.rateLimited.lenOf(flow) < fanfare.MaxBatch
}

// CapacityChanged returns a channel that is closed when HasCapacity may have changed to true.
func (s *Sender) CapacityChanged() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.waiting.capacityChanged
}

// Submit takes a batch. Its jobs are sent in order, in turn with those of the lane's other
// flows, and each lane before the less urgent ones. A driver that delivers whole batches gets
// a large batch at once if no limit counts its messages. After Stop all jobs stay unsettled.
func (s *Sender) Submit(batch *Batch) {
	if len(batch.Jobs) == 0 {
		batch.Finish(0, 0)
		return
	}
	s.mu.Lock()
	batch.unsettled = len(batch.Jobs)
	stopped := s.ctx.Err() != nil
	if whole := s.wholeDriver(batch); whole != nil && !stopped {
		for i := range batch.Jobs {
			batch.Jobs[i].batch = batch
			batch.Jobs[i].Message.Owner = &batch.Jobs[i]
		}
		s.wholeBatches++
		s.running.Go(func() { s.deliverWhole(batch, whole) })
		s.mu.Unlock()
		return
	}
	for i := range batch.Jobs {
		job := &batch.Jobs[i]
		job.batch = batch
		job.Message.Owner = job
		if stopped {
			s.leaveUnsettled(job, Go, nil)
			continue
		}
		s.waiting.push(job)
	}
	s.hurryUpFor(batch.Lane)
	s.openConnections()
	for range min(s.relays.idle(), len(batch.Jobs)) {
		s.wakeOne()
	}
	s.mu.Unlock()
	if stopped {
		finish([]*Batch{batch})
	}
}

// AwaitInFlight returns when no message for a subscription is in flight. Before this call, the
// caller must make the gate refuse such messages.
func (s *Sender) AwaitInFlight(ctx context.Context, subscription fanfare.RowID) error {
	for _, off := range s.inFlightOf(subscription) {
		select {
		case <-off:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

func (s *Sender) inFlightOf(subscription fanfare.RowID) []chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	var offs []chan struct{}
	for _, job := range s.inFlight {
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

// RecheckGate removes the jobs from the queue that the gate no longer allows, so that paused or
// cancelled jobs do not wait for a connection while all are busy with a slow
// relay. Release asks the gate about jobs that connections hold.
func (s *Sender) RecheckGate() {
	s.mu.Lock()
	var finished []*Batch
	now := s.options.Clock.Now()
	for _, job := range s.remove(func(job *Job) bool { decision, _ := s.decide(job, now); return decision != Go }) {
		if decision, why := s.decide(job, now); decision != Go {
			finished = s.settleRefused(job, decision, why, finished)
		} else {
			s.putBack(job) // resumed between the two checks
		}
	}
	s.unblock()
	s.mu.Unlock()
	finish(finished)
}

// SetRate changes the number of messages per second. It applies immediately, including to jobs
// that wait for the old rate. Connections stay open.
func (s *Sender) SetRate(perSecond rate.Limit) {
	s.mu.Lock()
	defer s.mu.Unlock()
	settings := *s.settings
	settings.Rate = perSecond
	s.settings = &settings
	s.limits.configure(s.settings, s.options.Clock.Now())
	s.hurryUp()
}

// SetRelays replaces the relays and the number of connections. Connections of relays that stay
// the same stay open.
func (s *Sender) SetRelays(relays []RelaySettings, connections int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	settings := *s.settings
	settings.Relays, settings.Connections = relays, connections
	s.settings = &settings
	s.limits.configure(s.settings, s.options.Clock.Now())
	s.hurryUp()
	s.configure(relays)
	s.openConnections()
}

// SetBudgets replaces the budgets. Call it also when their limits have changed.
func (s *Sender) SetBudgets(budgets []Budget) {
	s.mu.Lock()
	defer s.mu.Unlock()
	settings := *s.settings
	settings.Budgets = budgets
	s.settings, s.limits.settings = &settings, &settings
	s.limits.closedUntil = time.Time{}
	s.hurryUp()
	s.unblock()
	s.openConnections()
}

// SuppressSubscriber removes the messages of a subscriber from the queue and settles them
// as suppressed, without their address. It does not wait until that is recorded. The gate
// decides about messages that connections hold.
func (s *Sender) SuppressSubscriber(subscriber fanfare.RowID, why string) {
	s.mu.Lock()
	var finished []*Batch
	for _, job := range s.remove(func(job *Job) bool { return job.Subscriber == subscriber }) {
		job.Message.To = ""
		finished = s.settleRefused(job, Suppress, why, finished)
	}
	s.unblock()
	s.mu.Unlock()
	finish(finished)
}
