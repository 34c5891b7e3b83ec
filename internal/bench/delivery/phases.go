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

// turns are stretches of one broadcast, in every other of which, from the first on,
// something goes on beside it. A machine whose speed changes from minute to minute
// changes it for neighbours alike, so that they can be compared where two runs cannot.
type phases struct {
	marks []phaseStart // where each begins; the last one has no end
}

// A phaseStart is where a turn begins.
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

// A phase is what was done in one.
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
	return fmt.Sprintf("%s mails/s, %.1f us of the server a mail, %.1f outcomes a commit",
		report.Figure(t.perSecond()), float64(t.cpu.Microseconds())/max(1, t.mails), t.mails/max(1, t.commits))
}

// within are the turns that ended before a time, with what came to the sink in each.
func (t *phases) within(end time.Time, first time.Time, came sink.Timeline) (all []phase) {
	step := time.Duration(came.StepMillis) * time.Millisecond
	for i := 1; i < len(t.marks) && step > 0 && !t.marks[i].at.After(end); i++ {
		from, to := t.marks[i-1], t.marks[i]
		// The steps that lie in it: what they miss of the turn, they miss of each.
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

// compareNeighbours holds the turns with something beside them against those before and after
// each. The first turn, in which all begins, is left out.
func compareNeighbours(all []phase) (with, without phase, ratios []float64) {
	for i := 2; i+1 < len(all); i += 2 {
		around := all[i-1].plus(all[i+1])
		with, without = with.plus(all[i]), without.plus(around)
		ratios = append(ratios, all[i].perSecond()/max(1, around.perSecond()))
	}
	slices.Sort(ratios)
	return with, without, ratios
}

// judgePhases makes the rate beside what went on the value, and that without it the
// limit.
func judgePhases(r *report.Record, all []phase, length time.Duration) {
	with, without, ratios := compareNeighbours(all)
	if len(ratios) == 0 {
		r.Note("the broadcast was too short for turns of %v, so that it is not known what the urgent messages cost it", length)
		return
	}
	r.Value = with.perSecond()
	r.SetLimit(without.perSecond())
	each := make([]string, len(ratios))
	for i, ratio := range ratios {
		each[i] = fmt.Sprintf("%.2f", ratio)
	}
	r.Note("urgent messages in every other turn of %v, each held against the turns before and after it; the limit is the rate of those (goal: a ratio of 0.95); the ratios of the %d turns: %s",
		length, len(ratios), strings.Join(each, ", "))
	r.Note("with urgent messages: %v", with)
	r.Note("without: %v", without)
}
