package deliver

import (
	"context"
	"slices"
	"time"

	"golang.org/x/time/rate"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/failpoint"
	"fanfare.dev/fanfare/internal/pipeline/deliver/driver"
)

const (
	// minWholeBatch is the number of jobs from which a batch is delivered as a whole.
	minWholeBatch = 64
	// maxWholeBatches is the number of batches that are delivered as a whole at the same time: while one waits for a commit, another is
	// prepared.
	maxWholeBatches = 4
)

// wholeDriver returns the driver that delivers a batch as a whole, or nil if its messages must be sent one by one: the driver sends over
// connections, or a limit counts messages. The caller holds mu.
func (s *Sender) wholeDriver(batch *Batch) driver.BatchDriver {
	whole := s.batchDriver()
	if len(batch.Jobs) < minWholeBatch || whole == nil {
		return nil
	}
	for i := range batch.Jobs {
		if job := &batch.Jobs[i]; job.Destination != "" || s.hasBroadcastRate(job) {
			return nil
		}
	}
	return whole
}

// DeliversWhole reports whether the sender delivers large batches as a whole, several at the same time and in any order.
func (s *Sender) DeliversWhole() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.batchDriver() != nil
}

// batchDriver returns the driver that delivers batches as a whole, or nil if a limit counts messages. The caller holds mu.
func (s *Sender) batchDriver() driver.BatchDriver {
	if len(s.settings.Relays) != 1 || s.settings.Rate != rate.Inf || len(s.settings.Budgets) > 0 || s.settings.Adapt {
		return nil
	}
	r := &s.settings.Relays[0]
	whole, ok := r.Driver.(driver.BatchDriver)
	if !ok || r.Drained || r.Weight == 0 {
		return nil
	}
	return whole
}

func (s *Sender) hasBroadcastRate(job *Job) bool {
	if s.options.BroadcastRates == nil {
		return false
	}
	_, limited := s.options.BroadcastRates.GroupSize(job.event(), 1)
	return limited
}

// deliverWhole delivers a batch as a whole. As Release does, it first marks the jobs as in flight and then asks the gate.
func (s *Sender) deliverWhole(batch *Batch, whole driver.BatchDriver) {
	leads := s.awaitNodeLease()
	s.mu.Lock()
	settings := s.settings
	for i := range batch.Jobs {
		s.inFlight.put(&batch.Jobs[i])
	}
	s.mu.Unlock()
	now := s.options.Clock.Now()
	short := !leads || s.ctx.Err() != nil || time.Until(batch.LeaseEnd()) < settings.SendTimeout
	jobs := make([]*Job, 0, len(batch.Jobs))
	messages := make([]*driver.Message, 0, len(batch.Jobs))
	var finished []*Batch
	for i := range batch.Jobs {
		job := &batch.Jobs[i]
		decision, why := s.decide(job, now)
		if decision == Go && !short {
			jobs, messages = append(jobs, job), append(messages, &job.Message)
			continue
		}
		s.mu.Lock()
		s.endInFlight(job)
		if decision == Go {
			finished = s.leaveUnsettled(job, Go, finished)
		} else {
			finished = s.settleRefused(job, decision, why, finished)
		}
		s.mu.Unlock()
	}
	if len(jobs) > 0 {
		finished = s.deliverJobs(jobs, messages, whole, settings, finished)
	}
	s.mu.Lock()
	s.wholeBatches--
	s.waiting.signalCapacity()
	s.mu.Unlock()
	finish(finished)
}

// deliverJobs delivers jobs that the gate admitted, and records their outcomes.
func (s *Sender) deliverJobs(jobs []*Job, messages []*driver.Message, whole driver.BatchDriver, settings *Settings, finished []*Batch) []*Batch {
	failpoint.Hit("before-body")
	ctx, cancel := context.WithTimeout(context.WithoutCancel(s.ctx), settings.SendTimeout)
	started := s.options.Clock.Now()
	outcomes := whole.DeliverAll(ctx, messages)
	took := s.options.Clock.Now().Sub(started)
	cancel()
	failpoint.Hit("after-reply")
	entries := make([]fanfare.Entry, len(jobs))
	for i, job := range jobs {
		_, entries[i] = s.entryOf(job, &outcomes[i], settings)
	}
	errs := make([]error, len(jobs))
	for from := 0; from < len(jobs); { // a commit has entries of one day
		to := sameDay(entries, from)
		err := s.recordWhole(jobs[from:to], entries[from:to])
		for i := from; i < to; i++ {
			errs[i] = err
		}
		from = to
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.options.Clock.Now()
	for i, job := range jobs {
		s.endInFlight(job)
		if outcomes[i].Verdict == driver.Accepted {
			s.accepted++
		}
		if i == 0 || outcomes[i] != outcomes[i-1] {
			s.countOutcome(s.relays[0], &outcomes[i], took, now)
		} else if outcomes[i].Verdict == driver.Accepted {
			s.relays[0].accepted++
		}
		if errs[i] != nil {
			finished = s.leaveUnsettled(job, Go, finished)
		} else {
			finished = s.settle(job, finished)
		}
	}
	return finished
}

func (s *Sender) recordWhole(jobs []*Job, entries []fanfare.Entry) error {
	var dues []fanfare.Due
	for i, job := range jobs {
		if due := s.due(job, &entries[i]); due != nil {
			dues = append(dues, *due)
		}
	}
	return s.options.Recorder.RecordGroup(slices.Clip(entries), dues, 0)
}
