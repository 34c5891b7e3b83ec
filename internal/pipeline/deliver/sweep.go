package deliver

import (
	"time"

	"golang.org/x/time/rate"
)

// Sweep takes out of the queue what the gate does not let pass any more, so that
// what is paused or cancelled waits for no connection: of a slow relay all may be
// busy for long. What connections have taken is asked about before it leaves.
func (o *Sender) Sweep() {
	o.mu.Lock()
	var finished []*Batch
	now := o.options.Clock.Now()
	for _, job := range o.remove(func(job *Job) bool { decision, _ := o.decide(job, now); return decision != Go }) {
		if decision, why := o.decide(job, now); decision != Go {
			finished = o.dismiss(job, decision, why, finished)
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
	o.hasten()
}

// SetBudgets puts others in force, or tells that their limits have changed.
func (o *Sender) SetBudgets(budgets []Budget) {
	o.mu.Lock()
	defer o.mu.Unlock()
	settings := *o.settings
	settings.Budgets = budgets
	o.settings, o.limits.settings = &settings, &settings
	o.limits.closedUntil = time.Time{}
	o.hasten()
	o.unblock()
	o.spawn()
}
