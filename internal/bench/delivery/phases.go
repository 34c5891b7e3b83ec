package delivery

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"fanfare.dev/fanfare/internal/bench/harness"
	"fanfare.dev/fanfare/internal/bench/report"
	"fanfare.dev/fanfare/internal/sink"
)

// phases are consecutive parts of one broadcast. In every second one, beginning with the
// first, something else happens at the same time. The speed of a machine changes from
// minute to minute, and neighbouring phases change alike, so that they can be compared
// where two runs cannot.
type phases struct {
	marks []phaseStart // the beginnings; the last phase has no end
}

// A phaseStart is the beginning of a phase.
type phaseStart struct {
	at      time.Time
	cpu     time.Duration // of the server until then
	commits float64
}

// begin begins the next turn.
func (t *phases) begin(s *harness.Server) error {
	commits, err := s.Metric(harness.CommitsMetric)
	t.marks = append(t.marks, phaseStart{time.Now(), s.Used().CPU, commits})
	return err
}

// A phase is the work that was done in one of them.
type phase struct {
	span    time.Duration
	mails   float64
	cpu     time.Duration
	commits float64
}

func (t phase) perSecond() float64 { return t.mails / t.span.Seconds() }

func (t phase) plus(o phase) phase {
	return phase{t.span + o.span, t.mails + o.mails, t.cpu + o.cpu, t.commits + o.commits}
}

func (t phase) String() string {
	return fmt.Sprintf("%s mails/s, %.1f us of server CPU for a mail, %.1f outcomes in a commit",
		report.Figure(t.perSecond()), float64(t.cpu.Microseconds())/max(1, t.mails), t.mails/max(1, t.commits))
}

// within returns the phases that ended before a time, with the mails that arrived at the
// sink in each.
func (t *phases) within(end time.Time, first time.Time, came sink.Timeline) (all []phase) {
	step := time.Duration(came.StepMillis) * time.Millisecond
	for i := 1; i < len(t.marks) && step > 0 && !t.marks[i].at.After(end); i++ {
		from, to := t.marks[i-1], t.marks[i]
		// The steps of the timeline that lie completely in the phase.
		begin, over := int((from.at.Sub(first)+step-1)/step), int(to.at.Sub(first)/step)
		var mails int64
		for _, n := range came.Counts[min(max(0, begin), len(came.Counts)):min(max(0, over), len(came.Counts))] {
			mails += n
		}
		span := to.at.Sub(from.at)
		whole := time.Duration(max(1, over-begin)) * step
		all = append(all, phase{span, float64(mails) * float64(span) / float64(whole), to.cpu - from.cpu, to.commits - from.commits})
	}
	return all
}

// compareNeighbours compares each phase in which something else happens with the phases
// before and after it. It leaves out the first phase, in which the broadcast begins.
func compareNeighbours(all []phase) (with, without phase, ratios []float64) {
	for i := 2; i+1 < len(all); i += 2 {
		around := all[i-1].plus(all[i+1])
		with, without = with.plus(all[i]), without.plus(around)
		ratios = append(ratios, all[i].perSecond()/max(1, around.perSecond()))
	}
	slices.Sort(ratios)
	return with, without, ratios
}

// judgePhases makes the rate with urgent messages the value and the rate without them
// the limit.
func judgePhases(r *report.Record, all []phase, length time.Duration) {
	with, without, ratios := compareNeighbours(all)
	if len(ratios) == 0 {
		r.Note("the broadcast was too short for phases of %v, so the cost of urgent messages is not known", length)
		return
	}
	r.Value = with.perSecond()
	r.SetLimit(without.perSecond())
	each := make([]string, len(ratios))
	for i, ratio := range ratios {
		each[i] = fmt.Sprintf("%.2f", ratio)
	}
	r.Note("urgent messages in every second phase of %v, each compared with the phases before and after it; the limit is the rate of these (goal: a ratio of 0.95); the ratios of the %d phases: %s",
		length, len(ratios), strings.Join(each, ", "))
	r.Note("with urgent messages: %v", with)
	r.Note("without urgent messages: %v", without)
}
