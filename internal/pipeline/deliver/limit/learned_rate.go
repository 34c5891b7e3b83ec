package limit

import "time"

const (
	// foundSpan and foundAnswers are what a rate is measured over at least, and
	// foundLongest what it is measured over at most.
	minSpan    = time.Second
	minReplies = 10
	maxSpan    = 10 * time.Second
	// below is how far below what was taken a found rate is kept.
	learnedShare = 0.95
	// probeAfter is how long nothing may have been refused before more is tried,
	// and probeMore how much more.
	raiseAfter  = 15 * time.Second
	raiseFactor = 1.05
	// forgetAt is how far above the last rate that was refused a found rate is
	// forgotten.
	forgetFactor = 3
)

// LearnedRate is a rate that nobody configured: it is found by refusals that say "too
// many", kept a little below what was taken meanwhile, and raised rarely.
type LearnedRate struct {
	Rate

	perSecond float64 // 0: none found
	refusedAt float64 // the rate at which it was last refused
	raised    time.Time

	began   time.Time // of what is measured
	taken   int
	refused int
}

// PerSecond is the rate that was found, 0 where there is none.
func (f *LearnedRate) PerSecond() float64 { return f.perSecond }

// Answered counts an answer: whether the peer took the message, or refused it as
// one too many. Other answers are not told.
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
