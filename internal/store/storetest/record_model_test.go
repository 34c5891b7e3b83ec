package storetest_test

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"fanfare.dev/fanfare"
)

// A day as it should be kept: the naive answer to everything that a record is
// asked of it. It is nil for a day of which nothing is kept.
type dayModel struct {
	of       fanfare.Day
	frozen   []*frozenModel // in the order of freezing
	indexed  int            // of these, how many are in runs
	attempts map[fanfare.DeliveryRef][]fanfare.Entry
	done     map[fanfare.EventSeq]fanfare.Progress
	switches map[switchKey]switchModel
	controls map[saidKey]saidModel
	due      []fanfare.Due
	held     []string
	parked   []parkedModel
}

type frozenModel struct {
	fanfare.MatchResult
	at time.Time
}

type switchKey struct {
	seq     fanfare.EventSeq
	channel uint16
}

type switchModel struct {
	state, reason string
	at            time.Time
}

type saidKey struct {
	seq  fanfare.EventSeq
	name fanfare.ControlName
}

type saidModel struct {
	value string
	at    time.Time
}

type parkedModel struct {
	fanfare.Parked
	payload string
}

func newDayModel(of fanfare.Day) *dayModel {
	return &dayModel{of: of, attempts: map[fanfare.DeliveryRef][]fanfare.Entry{}, done: map[fanfare.EventSeq]fanfare.Progress{}, switches: map[switchKey]switchModel{}, controls: map[saidKey]saidModel{}}
}

func (d *dayModel) event(seq fanfare.EventSeq) *frozenModel {
	i := slices.IndexFunc(d.frozen, func(f *frozenModel) bool { return f.Posted.Seq == seq })
	if i < 0 {
		return nil
	}
	return d.frozen[i]
}

func (d *dayModel) freeze(f *fanfare.MatchResult, at time.Time) (fresh bool) {
	if d.event(f.Posted.Seq) != nil {
		return false
	}
	d.frozen = append(d.frozen, &frozenModel{*f, at})
	if f.Hold != "" {
		d.controls[saidKey{f.Posted.Seq, fanfare.ControlHold}] = saidModel{f.Hold, at}
	}
	return true
}

func (d *dayModel) record(c *fanfare.Commit) {
	for _, e := range c.Entries {
		known := d.attempts[e.Delivery]
		if !slices.ContainsFunc(known, func(k fanfare.Entry) bool { return k.Attempt == e.Attempt }) {
			d.attempts[e.Delivery] = append(known, e)
		}
	}
	for _, due := range c.Dues {
		if !slices.ContainsFunc(d.due, func(k fanfare.Due) bool { return dueKey(k) == dueKey(due) }) {
			d.due = append(d.due, due)
		}
	}
	for _, completion := range c.Completions {
		d.done[completion.Seq] = completion.Progress
	}
}

func dueKey(d fanfare.Due) string {
	return fmt.Sprint(d.At.Unix(), " ", uint64(d.Slice.Manifest), " ", d.Slice.Positions[0], " ", d.Slice.Attempt)
}

func (d *dayModel) hasten(seq fanfare.EventSeq) {
	hastened := d.due
	d.due = nil
	for _, due := range hastened { // two may become one
		if due.Slice.Manifest.Event() == seq {
			due.At = time.Unix(0, 0).UTC()
		}
		d.record(&fanfare.Commit{Dues: []fanfare.Due{due}})
	}
}

// ripe is the due work whose time has come, in order.
func (d *dayModel) ripe(now time.Time, limit int) []fanfare.Due {
	list := slices.DeleteFunc(slices.Clone(d.due), func(due fanfare.Due) bool { return due.At.After(now) })
	slices.SortFunc(list, func(a, b fanfare.Due) int {
		return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.Slice.Manifest, b.Slice.Manifest),
			cmp.Compare(a.Slice.Positions[0], b.Slice.Positions[0]), cmp.Compare(a.Slice.Attempt, b.Slice.Attempt))
	})
	return list[:min(limit, len(list))]
}

// entries are those of the positions [from, to) of a manifest, in order.
func (d *dayModel) entries(manifest fanfare.ManifestID, from, to uint32) (list []fanfare.Entry) {
	for position := from; position < to; position++ {
		of := slices.Clone(d.attempts[fanfare.DeliveryRef{Day: d.of, Manifest: manifest, Position: position}])
		slices.SortFunc(of, func(a, b fanfare.Entry) int { return cmp.Compare(a.Attempt, b.Attempt) })
		list = append(list, of...)
	}
	return list
}

// broadcast is what is told of an event.
func (d *dayModel) broadcast(f *frozenModel) *fanfare.Broadcast {
	b := &fanfare.Broadcast{Event: f.Posted.Ref().String(), State: "running", Matched: f.Matched, Messages: f.Messages,
		Stages: fanfare.Stages{Kept: f.KeptAt, Matched: f.MatchedAt, Frozen: f.at}}
	b.Describe(f.Posted)
	if done, ok := d.done[f.Posted.Seq]; ok {
		b.State, b.Counts, b.Reasons = "completed", done.Counts, done.Reasons
		b.Stages.First, b.Stages.Last, b.Stages.Completed = done.First, done.Last, done.Completed
	} else if f.Messages == 0 {
		b.State, b.Stages.Completed = "completed", f.at
	}
	if held, ok := d.controls[saidKey{f.Posted.Seq, fanfare.ControlHold}]; ok && b.State == "running" {
		b.State, b.Reason = fanfare.BroadcastHeld, held.value
	}
	b.ApprovedBy = d.controls[saidKey{f.Posted.Seq, fanfare.ControlApproved}].value
	b.RateLimit = d.controls[saidKey{f.Posted.Seq, fanfare.ControlRate}].value
	if s, ok := d.switches[switchKey{f.Posted.Seq, 0}]; ok && (b.State != "completed" || s.state == fanfare.SwitchCancelled) {
		b.State, b.Reason = s.state, s.reason
	}
	return b
}

// progress is counted from the newest attempt of each delivery of an event.
func (d *dayModel) progress(seq fanfare.EventSeq) (p fanfare.Progress) {
	refs := slices.SortedFunc(maps.Keys(d.attempts), func(a, b fanfare.DeliveryRef) int {
		return cmp.Or(cmp.Compare(a.Manifest, b.Manifest), cmp.Compare(a.Position, b.Position))
	})
	for _, ref := range refs {
		if ref.Manifest.Event() != seq {
			continue
		}
		of := d.entries(ref.Manifest, ref.Position, ref.Position+1)
		newest := of[len(of)-1]
		p.Counts[newest.State]++
		if newest.State >= fanfare.Failed {
			p.Reasons = p.Reasons.Add(&newest)
		}
		for _, e := range of {
			if p.First.IsZero() || e.At.Before(p.First) {
				p.First = e.At
			}
			if e.At.After(p.Last) {
				p.Last = e.At
			}
		}
	}
	return p
}

// events are those that a test is true of, newest first.
func (d *dayModel) events(is func(*frozenModel) bool) (list []fanfare.EventSeq) {
	for _, f := range d.frozen {
		if is(f) {
			list = append(list, f.Posted.Seq)
		}
	}
	slices.Sort(list)
	slices.Reverse(list)
	return list
}

// Answers of the model, each in one line, to what a record is asked in
// answersOf.
func (d *dayModel) answers(q *questions) (lines answerLines) {
	for _, seq := range q.events {
		f := d.event(seq)
		if f == nil {
			lines.add("event", seq, "not_found")
			continue
		}
		lines.add("event", seq, "%s", asJSON(d.broadcast(f)))
		lines.add("posted", seq, "%s", asJSON(f.Posted))
		lines.add("manifests", seq, "%v", f.Manifests)
		for _, partition := range q.partitions {
			covering := fanfare.ManifestID(0)
			for i := range f.Manifests {
				if f.Manifests[i].ID <= fanfare.NewManifestID(seq, partition) {
					covering = f.Manifests[i].ID
				}
			}
			lines.add("manifest of", partition, "%x", uint64(covering))
		}
		for i := range f.Manifests {
			id := f.Manifests[i].ID
			var last fanfare.Entry
			for _, e := range append(d.entries(id, q.from, q.to), fanfare.Entry{Delivery: fanfare.DeliveryRef{Position: q.to}}) {
				if last.Attempt > 0 && e.Delivery.Position != last.Delivery.Position {
					lines.add("latest", last.Delivery.Position, "%d %v", last.Attempt, last.State)
				}
				last = e
			}
			for state := fanfare.Failed; state <= fanfare.Suppressed; state++ {
				var positions []uint32
				for _, e := range d.entries(id, q.from, q.to) {
					if e.State == state && !slices.Contains(positions, e.Delivery.Position) && len(positions) < q.limit {
						positions = append(positions, e.Delivery.Position)
					}
				}
				lines.add("unsent", state, "%v", positions)
			}
			for _, e := range d.entries(id, q.from, q.to) {
				lines.add("attempt", e.Delivery, "%v", e)
			}
		}
	}
	listed := d.events(func(f *frozenModel) bool {
		return f.Posted.Seq >= q.after && f.Posted.Seq < q.before && (q.service == "" || f.Posted.Service == q.service)
	})
	lines.add("list", q.service, "%v", listed[:min(q.limit, len(listed))])
	var first, last fanfare.EventSeq
	if all := d.events(func(*frozenModel) bool { return true }); len(all) > 0 {
		first, last = slices.Min(all), slices.Max(all)
	}
	lines.add("range", first, "%v", last)
	open := d.events(func(f *frozenModel) bool { _, done := d.done[f.Posted.Seq]; return f.Messages > 0 && !done })
	slices.Reverse(open)
	for _, seq := range open {
		lines.add("open", seq, "%d %v", d.event(seq).Messages, d.progress(seq))
	}
	keys := slices.SortedFunc(maps.Keys(d.switches), func(a, b switchKey) int { return cmp.Or(cmp.Compare(a.seq, b.seq), cmp.Compare(a.channel, b.channel)) })
	for _, key := range keys {
		lines.add("switch", key, "%v", d.switches[key])
	}
	for _, key := range slices.SortedFunc(maps.Keys(d.controls), func(a, b saidKey) int { return cmp.Or(cmp.Compare(a.seq, b.seq), cmp.Compare(a.name, b.name)) }) {
		lines.add("control", key, "%v", d.controls[key])
	}
	next := time.Time{}
	if ripe := d.ripe(farAway, 1); len(ripe) > 0 {
		next = ripe[0].At
	}
	lines.add("next due", next.Unix(), "")
	for _, due := range d.ripe(q.now, q.limit) {
		lines.add("due", dueText(due), "")
	}
	for _, batch := range d.held {
		lines.add("held", batch, "")
	}
	for _, p := range d.parked {
		lines.add("parked", p.Reason, "%s %s %d %d %v %q", p.Kind, p.Event, p.Failures, p.Members, p.At.UTC(), p.payload)
	}
	for _, person := range q.people {
		lines.add("history", person, "%v", d.events(func(f *frozenModel) bool {
			return slices.ContainsFunc(f.Manifests, func(m fanfare.Manifest) bool { return len(m.PositionsOf(person)) > 0 })
		}))
	}
	for _, id := range q.ids {
		found := d.events(func(f *frozenModel) bool { return f.Posted.Service == "news" && f.Posted.Event.ID == id })
		lines.add("id", id, "%v", append(found, 0)[0])
	}
	for _, reference := range q.references {
		lines.add("reference", reference, "%v", d.events(func(f *frozenModel) bool {
			return f.Posted.Service == "news" && f.Posted.Direct != nil && f.Posted.Direct.Reference == reference
		}))
	}
	lines.add("lag", len(d.frozen)-d.indexed, "")
	return lines
}
