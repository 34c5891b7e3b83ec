package limit

import "time"

const (
	// A rate is measured over at least minSpan and minReplies, and over at most maxSpan.
	minSpan    = time.Second
	minReplies = 10
	maxSpan    = 10 * time.Second
	// learnedShare is the share of the accepted rate that becomes the learned rate.
	learnedShare = 0.95
	// raiseAfter is the time without refusals after which the rate is raised, by
	// raiseFactor.
	raiseAfter  = 15 * time.Second
	raiseFactor = 1.05
	// forgetFactor times the last refused rate is the rate at which the limit is dropped.
	forgetFactor = 3
)

// A LearnedRate is a rate that is not configured but learned from refusals that say "too
// many". It stays a little below the rate that was accepted, and is raised slowly.
type LearnedRate struct {
	Rate

	perSecond float64 // 0: none learned
	refusedAt float64 // the rate at which it was last refused
	raised    time.Time

	began   time.Time // start of the measurement
	taken   int
	refused int
}

// PerSecond returns the learned rate, or 0 if there is none.
func (f *LearnedRate) PerSecond() float64 { return f.perSecond }

// Answered counts a reply: whether the peer accepted the message or refused it as too many.
// Do not count other replies.
func (f *LearnedRate) Answered(refused bool, now time.Time) {
	if f.began.IsZero() {
		f.began, f.raised = now, now
	}
	if refused {
		f.refused++
	} else {
		f.taken++
	}
	span := now.Sub(f.began)
	if span < minSpan || f.taken+f.refused < minReplies && span < maxSpan {
		return
	}
	rate := float64(f.taken) / span.Seconds()
	switch {
	case f.refused >= 2:
		f.refusedAt = rate
		if f.perSecond > 0 {
			f.refusedAt = min(rate, f.perSecond)
		}
		f.perSecond, f.raised = max(1/maxSpan.Seconds(), f.refusedAt*learnedShare), now
		f.Set(f.perSecond, now)
	case f.perSecond > 0 && now.Sub(f.raised) >= raiseAfter:
		f.perSecond, f.raised = f.perSecond*raiseFactor, now
		if f.perSecond > forgetFactor*f.refusedAt {
			f.perSecond = 0
			f.Set(-1, now)
		} else {
			f.Set(f.perSecond, now)
		}
	}
	f.began, f.taken, f.refused = now, 0, 0
}
