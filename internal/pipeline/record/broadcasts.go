package record

import (
	"slices"
	"sync"
	"time"

	"fanfare.dev/fanfare"
)

// broadcasts contains the progress of all open broadcasts. For a broadcast without an entry it
// stores only the size, because a backlog may have millions of small events.
type broadcasts struct {
	mu       sync.Mutex
	notBegun map[fanfare.EventRef]int64
	begun    map[fanfare.EventRef]*broadcast
	changed  []*broadcast // those with entries that are about to be committed

	pending, deferred int64 // deliveries of all broadcasts
}

type broadcast struct {
	total             int64
	progress          fanfare.Progress // with the entries that are about to be committed
	recorded          fanfare.Progress // without them; callers get this
	changed           bool
	ownReasons        bool // progress.Reasons is not shared with recorded
	rate              rateMeter
	allFailedReported bool // Options.OnAllFailed was called
}

func (b *broadcast) pending() int64 { return b.total - b.recorded.Counts.Total() }

func newBoard() *broadcasts {
	return &broadcasts{notBegun: map[fanfare.EventRef]int64{}, begun: map[fanfare.EventRef]*broadcast{}}
}

// Begin adds a broadcast whose manifest was stored, with the progress that is already
// recorded. A second call for the same broadcast has no effect.
func (r *Recorder) Begin(ref fanfare.EventRef, messages int64, so fanfare.Progress) {
	all := r.broadcasts
	all.mu.Lock()
	defer all.mu.Unlock()
	if _, known := all.notBegun[ref]; known || all.begun[ref] != nil {
		return
	}
	if so.Counts.Total() == 0 {
		all.notBegun[ref] = messages
	} else {
		all.begun[ref] = &broadcast{total: messages, progress: so, recorded: so}
	}
	all.pending += messages - so.Counts.Total()
	all.deferred += so.Counts[fanfare.Deferred]
}

// Progress returns the progress of an open broadcast; false if it is not open. Deliveries
// without a recorded entry count as pending, so that the store is never behind the counts.
func (r *Recorder) Progress(ref fanfare.EventRef) (fanfare.Progress, bool) {
	r.broadcasts.mu.Lock()
	defer r.broadcasts.mu.Unlock()
	var p fanfare.Progress
	if messages, ok := r.broadcasts.notBegun[ref]; ok {
		p.Counts[fanfare.Pending] = messages
		return p, true
	}
	b := r.broadcasts.begun[ref]
	if b == nil {
		return p, false
	}
	p = b.recorded
	p.Counts[fanfare.Pending] = b.pending()
	return p, true
}

// Open lists at most limit broadcasts that are not completed; those of which something was
// sent come first.
func (r *Recorder) Open(limit int) []fanfare.EventRef {
	r.broadcasts.mu.Lock()
	defer r.broadcasts.mu.Unlock()
	refs := make([]fanfare.EventRef, 0, min(limit, len(r.broadcasts.begun)+len(r.broadcasts.notBegun)))
	for ref := range r.broadcasts.begun {
		if len(refs) == limit {
			return refs
		}
		refs = append(refs, ref)
	}
	for ref := range r.broadcasts.notBegun {
		if len(refs) == limit {
			return refs
		}
		refs = append(refs, ref)
	}
	return refs
}

// Backlog counts the broadcasts that are not completed, and their deliveries that are not
// settled.
func (r *Recorder) Backlog() (broadcasts int, pending, deferred int64) {
	r.broadcasts.mu.Lock()
	defer r.broadcasts.mu.Unlock()
	return len(r.broadcasts.begun) + len(r.broadcasts.notBegun), r.broadcasts.pending, r.broadcasts.deferred
}

// begin returns the open broadcast that gets an entry, or nil if it is not open.
func (all *broadcasts) begin(ref fanfare.EventRef) *broadcast {
	if b := all.begun[ref]; b != nil {
		return b
	}
	messages, ok := all.notBegun[ref]
	if !ok {
		return nil
	}
	delete(all.notBegun, ref)
	b := &broadcast{total: messages}
	all.begun[ref] = b
	return b
}

// apply counts entries of one day that are about to be committed, adds the resulting
// completions to the commit, and returns the broadcasts of which all messages have failed.
// Counts are never reverted: a commit that fails permanently stops the recorder.
func (all *broadcasts) apply(entries []fanfare.Entry, commit *fanfare.Commit, now time.Time) (allFailed []fanfare.EventRef) {
	all.mu.Lock()
	defer all.mu.Unlock()
	for i := range entries {
		e := &entries[i]
		ref := fanfare.EventRef{Day: e.Delivery.Day, Seq: e.Delivery.Manifest.Event()}
		b := all.begin(ref)
		if e.Returned {
			all.applyReturned(i, b, commit)
			continue
		}
		if b == nil {
			continue // completed before: the entry is a repetition
		}
		all.markChanged(b)
		p := &b.progress
		if e.Attempt > 1 {
			p.Counts[fanfare.Deferred]--
		}
		p.Counts[e.State]++
		b.addReason(e)
		if e.State != fanfare.Deferred {
			b.rate.add(now)
		}
		if p.First.IsZero() {
			p.First = now
		}
		p.Last = now
		if p.Counts.Settled() == b.total {
			p.Completed = now
			commit.Completions = append(commit.Completions, fanfare.Completion{Seq: ref.Seq, Progress: *p})
		}
		taken := p.Counts[fanfare.Accepted] + p.Counts[fanfare.Delivered]
		if !b.allFailedReported && p.Counts[fanfare.Failed] >= allFailedAfter && taken == 0 && p.Counts.Settled() < b.total {
			b.allFailedReported = true
			allFailed = append(allFailed, ref)
		}
	}
	return allFailed
}

// applyReturned counts an entry about a returned message. Such a delivery is settled
// already. The store keeps the counts of completed broadcasts.
func (all *broadcasts) applyReturned(i int, b *broadcast, commit *fanfare.Commit) {
	if b == nil {
		commit.Corrections = append(commit.Corrections, i)
		return
	}
	all.markChanged(b)
	p := &b.progress
	p.Counts[fanfare.Accepted]--
	p.Counts[commit.Entries[i].State]++
	b.addReason(&commit.Entries[i])
	if !p.Completed.IsZero() { // by an earlier entry of the same group
		commit.Completions = append(commit.Completions, fanfare.Completion{Seq: commit.Entries[i].Delivery.Manifest.Event(), Progress: *p})
	}
}

// addReason counts the reason of an entry that is about to be committed.
func (b *broadcast) addReason(e *fanfare.Entry) {
	if !e.State.HasReason() {
		return
	}
	if !b.ownReasons {
		b.progress.Reasons = slices.Clone(b.progress.Reasons)
		b.ownReasons = true
	}
	b.progress.Reasons = b.progress.Reasons.Add(e)
}

// markChanged notes that a broadcast has an entry that is about to be committed.
func (all *broadcasts) markChanged(b *broadcast) {
	if !b.changed {
		b.changed = true
		all.changed = append(all.changed, b)
	}
}

// committed publishes the counts of the committed entries, and forgets completed
// broadcasts.
func (all *broadcasts) committed(day fanfare.Day, completions []fanfare.Completion) {
	all.mu.Lock()
	defer all.mu.Unlock()
	for _, b := range all.changed {
		was := b.pending()
		all.deferred += b.progress.Counts[fanfare.Deferred] - b.recorded.Counts[fanfare.Deferred]
		b.recorded, b.changed, b.ownReasons = b.progress, false, false
		all.pending += b.pending() - was
	}
	clear(all.changed)
	all.changed = all.changed[:0]
	for i := range completions {
		delete(all.begun, fanfare.EventRef{Day: day, Seq: completions[i].Seq})
	}
}

// drop forgets the broadcasts of a day.
func (all *broadcasts) drop(day fanfare.Day) {
	all.mu.Lock()
	defer all.mu.Unlock()
	for ref, messages := range all.notBegun {
		if ref.Day == day {
			all.pending -= messages
			delete(all.notBegun, ref)
		}
	}
	for ref, b := range all.begun {
		if ref.Day == day {
			all.pending -= b.pending()
			all.deferred -= b.recorded.Counts[fanfare.Deferred]
			delete(all.begun, ref)
		}
	}
	all.changed = nil // all of them are of that day
}
