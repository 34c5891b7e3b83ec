package digest

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/pipeline/plan"
	"fanfare.dev/fanfare/internal/store/deliveries"
)

const (
	// maxPairs is the number of (subscriber, event) pairs that are merged together. A single
	// partition may have more.
	maxPairs = 4_000_000
	// readEvents is the number of events that are read together.
	readEvents = 1000
)

// Merge returns the result of a run: the recipients who waited for it, with their events. No event
// is rescheduled until the round ends. The result of a run that is frozen already is empty.
func (r *Round) Merge(ctx context.Context, run *fanfare.AcceptedEvent) (*fanfare.MatchResult, error) {
	return r.scheduler.merge(ctx, r, run)
}

func (g *Scheduler) merge(ctx context.Context, round *Round, posted *fanfare.AcceptedEvent) (*fanfare.MatchResult, error) {
	if round.held == nil {
		g.running.Lock()
		round.held = &g.running
	}
	f := &fanfare.MatchResult{Posted: posted, MatchedAt: g.Clock.Now()}
	run := posted.Run
	if _, frozen, err := g.Store.RunAt(ctx, run.Slot, run.Due); err != nil || frozen {
		return f, err
	}
	if !round.loaded { // a commit that returned an error may have succeeded
		if err := g.loadAll(ctx); err != nil {
			return nil, err
		}
		round.loaded = true
	}
	m := &runMerge{Scheduler: g, posted: posted, topics: map[string]int{}, versions: map[version]int{}}
	m.digest.Live = g.Live
	var err error
	if slot, known := g.Slots.Slot(run.Slot); known && slot.Cadence.OfState() {
		err = m.state(ctx, slot)
	} else {
		err = m.mergeWaiting(ctx)
	}
	if err != nil {
		return nil, err
	}
	f.Manifests = m.manifests
	for i := range f.Manifests {
		f.Messages += int64(f.Manifests[i].Members())
		for j := range f.Manifests[i].Sections {
			f.Matched += int64(len(f.Manifests[i].Sections[j].Members.Subscriptions()))
		}
	}
	used := m.digest.Used()
	m.digest = plan.DigestMerger{} // releases its memory
	f.Items = func(visit func(fanfare.RunItem) error) error { return m.items(ctx, used, visit) }
	f.MatchedAt = g.Clock.Now()
	return f, nil
}

// A runMerge merges the events of one run.
type runMerge struct {
	*Scheduler
	posted    *fanfare.AcceptedEvent
	days      []fanfare.Day
	events    []fanfare.EventRef // by number
	digest    plan.DigestMerger
	manifests []fanfare.Manifest

	topics      map[string]int // indexes in topicList
	topicList   []Topic        // without a template: its events are not reported
	versions    map[version]int
	stateEvents map[uint32]*fanfare.AcceptedEvent // the events of a run that reports states
}

type version struct {
	topic int
	key   string
}

// mergeWaiting merges the manifests that wait for the run, a few partitions at a time.
func (m *runMerge) mergeWaiting(ctx context.Context) error {
	m.days = m.daysOfRun(m.posted.Run)
	pairs := [fanfare.Partitions]int{}
	events := map[fanfare.EventRef]struct{}{}
	err := m.rows(ctx, func(day fanfare.Day, row *fanfare.Manifest) {
		events[fanfare.EventRef{Day: day, Seq: row.ID.Event()}] = struct{}{}
		for i := range row.Sections {
			for _, place := range row.Sections[i].Members.Subscriptions() {
				pairs[place.Partition()]++
			}
		}
	})
	if err != nil {
		return err
	}
	m.events = slices.SortedFunc(maps.Keys(events), inOrder)
	if err := m.readSources(ctx); err != nil {
		return err
	}
	for from := 0; from < fanfare.Partitions; {
		to, n := from+1, pairs[from]
		for to < fanfare.Partitions && n+pairs[to] <= maxPairs {
			n += pairs[to]
			to++
		}
		if n > 0 {
			err := m.rows(ctx, func(day fanfare.Day, row *fanfare.Manifest) {
				number, _ := slices.BinarySearchFunc(m.events, fanfare.EventRef{Day: day, Seq: row.ID.Event()}, inOrder)
				m.add(uint32(number), row, from, to)
			})
			if err != nil {
				return err
			}
			m.manifests = append(m.manifests, m.digest.Manifests(m.posted.Seq)...)
		}
		from = to
	}
	return nil
}

func (m *runMerge) add(number uint32, row *fanfare.Manifest, from, to int) {
	if m.digest.Sources[number].Template != 0 { // otherwise the topic or its digest was deleted
		m.digest.Add(number, row, from, to)
	}
}

func inOrder(a, b fanfare.EventRef) int {
	return cmp.Or(cmp.Compare(a.Day, b.Day), cmp.Compare(a.Seq, b.Seq))
}

// daysOfRun returns the days whose events wait for a run.
func (g *Scheduler) daysOfRun(of *fanfare.Run) (days []fanfare.Day) {
	for _, r := range g.selectRuns(func(r *run) bool { return r.key() == runKey{of.Slot, of.Due.Unix()} }) {
		days = g.daysOf(r)
	}
	return days
}

// rows visits the manifests that wait for the run.
func (m *runMerge) rows(ctx context.Context, visit func(fanfare.Day, *fanfare.Manifest)) error {
	for _, day := range m.days {
		err := m.Store.Gathered(ctx, day, m.posted.Run.Slot, m.posted.Run.Due, func(row *fanfare.Manifest) error {
			visit(day, row)
			return nil
		})
		if err = ignoreRemoved(err); err != nil {
			return err
		}
	}
	return nil
}

// readSources reads the events of the run.
func (m *runMerge) readSources(ctx context.Context) error {
	numbers := make([]uint32, len(m.events))
	for i := range numbers {
		numbers[i] = uint32(i)
	}
	m.digest.Sources = make([]plan.SourceEvent, len(m.events))
	return m.each(ctx, numbers, func(number uint32, posted *fanfare.AcceptedEvent) error {
		m.digest.Sources[number] = m.source(posted)
		return nil
	})
}

// each visits events, which are given by number.
func (m *runMerge) each(ctx context.Context, numbers []uint32, visit func(uint32, *fanfare.AcceptedEvent) error) error {
	for len(numbers) > 0 {
		day := m.events[numbers[0]].Day
		n := 1
		for n < min(len(numbers), readEvents) && m.events[numbers[n]].Day == day {
			n++
		}
		some := numbers[:n]
		numbers = numbers[n:]
		seqs := make([]fanfare.EventSeq, n)
		for i, number := range some {
			seqs[i] = m.events[number].Seq
		}
		err := m.Store.Moment(ctx, day, func(moment *deliveries.Moment) error {
			i := 0
			var failed error
			err := moment.Posted(seqs, func(posted *fanfare.AcceptedEvent) {
				if failed == nil {
					failed = visit(some[i], posted)
				}
				i++
			})
			return cmp.Or(err, failed)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// source describes an event to the merger.
func (m *runMerge) source(posted *fanfare.AcceptedEvent) plan.SourceEvent {
	number, known := m.topics[posted.Topic]
	if !known {
		topic, _ := m.Topic(posted.Service, posted.Topic)
		number = len(m.topicList)
		m.topics[posted.Topic] = number
		m.topicList, m.digest.Max = append(m.topicList, topic), append(m.digest.Max, topic.Max)
	}
	topic := &m.topicList[number]
	source := plan.SourceEvent{Topic: number, Template: topic.Template, Bytes: len(posted.Event.Data) + len(posted.Event.Binary)}
	if topic.Key == nil {
		return source
	}
	if key, has := topic.Key(&posted.Event); has {
		of := version{number, key}
		if m.versions[of] == 0 {
			m.versions[of] = len(m.versions) + 1
		}
		source.Version = m.versions[of]
	}
	return source
}

// items visits the events of ascending numbers.
func (m *runMerge) items(ctx context.Context, numbers []uint32, visit func(fanfare.RunItem) error) error {
	if m.stateEvents != nil {
		for _, number := range numbers {
			if err := visit(fanfare.RunItem{Number: number, Posted: m.stateEvents[number]}); err != nil {
				return err
			}
		}
		return nil
	}
	return m.each(ctx, numbers, func(number uint32, posted *fanfare.AcceptedEvent) error {
		return visit(fanfare.RunItem{Number: number, Posted: posted})
	})
}

// state merges the current states: the last event of each key.
func (m *runMerge) state(ctx context.Context, of Slot) error {
	type event struct {
		posted *fanfare.AcceptedEvent
		hits   []fanfare.Hit
	}
	var events []event
	err := m.State(ctx, of, func(posted *fanfare.AcceptedEvent, hits []fanfare.Hit) error {
		events = append(events, event{posted, hits})
		return nil
	})
	if err != nil {
		return err
	}
	slices.SortFunc(events, func(a, b event) int { return inOrder(a.posted.Ref(), b.posted.Ref()) })
	m.stateEvents = map[uint32]*fanfare.AcceptedEvent{}
	for i, e := range events {
		m.stateEvents[uint32(i)] = e.posted
		m.digest.Sources = append(m.digest.Sources, m.source(e.posted))
	}
	for i, e := range events {
		for _, row := range plan.Manifests(e.posted.Seq, e.hits, &plan.Pins{}) {
			m.add(uint32(i), &row, 0, fanfare.Partitions)
		}
	}
	m.manifests = m.digest.Manifests(m.posted.Seq)
	return nil
}
