package report

import (
	"fmt"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/people"
)

// An explanation is being built.
type explanation struct {
	fanfare.Explanation
	decided bool // the record decided; only checks of deliveries follow
	state   bool // the topic reports states, not events
	opinion Opinion
}

// immediate is the cadence without digests.
const immediate = "immediate"

func about(s *people.Subscription) fanfare.Explanation {
	e := fanfare.Explanation{Subscription: s.ID, Service: s.Service, Topic: s.Topic, Filter: s.Filter, Rule: s.Rule, Params: s.Params}
	if s.Cadence != immediate {
		e.Cadence = s.Cadence
	}
	return e
}

func (e *explanation) check(name string, holds bool, format string, args ...any) {
	e.Checks = append(e.Checks, fanfare.Check{Name: name, Holds: holds, Detail: fmt.Sprintf(format, args...)})
}

func (e *explanation) last() *fanfare.Check { return &e.Checks[len(e.Checks)-1] }

// good reports whether all checks so far passed.
func (e *explanation) good() bool { return e.failed() == nil }

// failed returns the first check that failed, or nil.
func (e *explanation) failed() *fanfare.Check {
	for i := range e.Checks {
		if !e.Checks[i].Holds {
			return &e.Checks[i]
		}
	}
	return nil
}

// lifetime adds whether the subscription existed when the event came.
func (e *explanation) lifetime(s *people.Subscription, posted *fanfare.AcceptedEvent) {
	came := posted.ReceivedAt.UTC().Format(time.RFC3339)
	began := s.CreatedSeq <= posted.ChangeSeq
	e.check("begun", began, "it began before the event came")
	if !began {
		e.last().Detail = fmt.Sprintf("it began at %s, after the event came at %s", s.CreatedAt.Format(time.RFC3339), came)
	}
	switch {
	case s.PausedSeq != 0 && s.PausedSeq <= posted.ChangeSeq && (s.ResumedSeq == 0 || s.ResumedSeq > posted.ChangeSeq) && (s.EndedSeq == 0 || s.EndedSeq > posted.ChangeSeq):
		e.check("active", false, "it was paused when the event came at %s", came)
	case s.State == "paused":
		e.check("active", true, "it was active when the event came at %s; %s", came, paused(s))
	case s.EndedSeq == 0:
		e.check("active", true, "it is active")
	case s.EndedSeq > posted.ChangeSeq:
		e.check("active", true, "it was active when the event came at %s; %s", came, ended(s))
	default:
		e.check("active", false, "%s, before the event came at %s", ended(s), came)
	}
}

func paused(s *people.Subscription) string {
	return "it is paused since " + s.PausedAt.Format(time.RFC3339)
}

func ended(s *people.Subscription) string {
	text := "it ended at " + s.EndedAt.Format(time.RFC3339)
	if s.Reason != "" {
		text += " (" + s.Reason + ")"
	}
	return text
}

// ofState adds the explanation for a topic whose messages report the state at their due time.
func (e *explanation) ofState(s *people.Subscription) {
	e.state = true
	e.check("state", true, "its messages tell what is the case when they are due (%s): the last event of each key, if the condition holds for it then", s.Cadence)
}

// conclude sets the verdict.
func (e *explanation) conclude() fanfare.Explanation {
	wrong := e.failed()
	if e.decided {
		for i := range e.Checks {
			if c := &e.Checks[i]; c.Name == "recorded" {
				e.Wanted = c.Holds
			}
		}
	} else {
		e.Wanted = wrong == nil
	}
	switch {
	case e.Wanted && e.Delivery != nil:
		e.Summary = "The event was for this subscription: " + outcome(e.Delivery)
	case e.Wanted && e.state:
		e.Summary = "The event is for this subscription as long as it is the last one of its key: it is told when the next message is due"
	case e.Wanted && e.decided:
		e.Summary = "The event was for this subscription"
	case e.Wanted && e.Event != "":
		e.Summary = "The event is for this subscription, and is not matched yet"
	case e.Wanted:
		e.Summary = "Such an event is for this subscription"
	case e.Event != "":
		e.Summary = "The event was not for this subscription: " + wrong.Detail
	default:
		e.Summary = "Such an event is not for this subscription: " + wrong.Detail
	}
	return e.Explanation
}
