package record

import (
	"sync"
	"time"

	"fanfare.dev/fanfare"
)

// broadcasts has the progress of all open broadcasts. Of one that has no entry yet
// only the size is held: a backlog of millions of small events is many of those.
type broadcasts struct {
	mu       sync.Mutex
	notBegun map[fanfare.EventRef]int64
	begun    map[fanfare.EventRef]*broadcast
	changed  []*broadcast // those with entries that are about to be kept

	pending, deferred int64 // deliveries of all of them
}

type broadcast struct {
	total             int64
	progress          fanfare.Progress // with the entries that are about to be kept
	recorded          fanfare.Progress // without them: what is told
	changed           bool
	rate              rateMeter
	allFailedReported bool // was told
}

func (b *broadcast) pending() int64 { return b.total - b.recorded.Counts.Total() }

func newBoard() *broadcasts {
	return &broadcasts{notBegun: map[fanfare.EventRef]int64{}, begun: map[fanfare.EventRef]*broadcast{}}
}

// Begin tells the recorder of a frozen broadcast, with what is settled of it
// already. A second Begin of the same one changes nothing.
func (r *Recorder) Begin(ref fanfare.EventRef, messages int64, so fanfare.Progress) {
	b := r.broadcasts
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, known := b.notBegun[ref]; known || b.begun[ref] != nil {
		return
	}
	if so.Counts.Total() == 0 {
		b.notBegun[ref] = messages
	} else {
		b.begun[ref] = &broadcast{total: messages, progress: so, recorded: so}
	}
	b.pending += messages - so.Counts.Total()
	b.deferred += so.Counts[fanfare.Deferred]
}

// Progress returns how far an open broadcast has come; false if it is not open.
// Deliveries without an entry that is kept are counted as pending: whoever asks the
// store afterwards finds what was counted.
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

// Open lists the broadcasts that are not completed, those first of which
// something was sent; at most limit of them.
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

// Backlog counts the broadcasts that are not completed, and their deliveries
// that are not settled.
func (r *Recorder) Backlog() (broadcasts int, pending, deferred int64) {
	r.broadcasts.mu.Lock()
	defer r.broadcasts.mu.Unlock()
	return len(r.broadcasts.begun) + len(r.broadcasts.notBegun), r.broadcasts.pending, r.broadcasts.deferred
}

// begin returns an open broadcast that gets an entry; nil if it is not open.
func (b *broadcasts) begin(ref fanfare.EventRef) *broadcast {
	if cast := b.begun[ref]; cast != nil {
		return cast
	}
	messages, ok := b.notBegun[ref]
	if !ok {
		return nil
	}
	delete(b.notBegun, ref)
	cast := &broadcast{total: messages}
	b.begun[ref] = cast
	return cast
}

// apply counts entries of one day that are about to be kept, adds the
// completions that follow from them to the commit, and returns the broadcasts
// that have turned sour. A commit that fails for good ends the recorder, so
// counts are never taken back.
func (b *broadcasts) apply(entries []fanfare.Entry, commit *fanfare.Commit, now time.Time) (sour []fanfare.EventRef) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := range entries {
		e := &entries[i]
		ref := fanfare.EventRef{Day: e.Delivery.Day, Seq: e.Delivery.Manifest.Event()}
		cast := b.begin(ref)
		if e.Returned {
			b.applyReturned(i, cast, commit)
			continue
		}
		if cast == nil {
			continue // was completed, and is told of twice
		}
		b.markChanged(cast)
		p := &cast.progress
		if e.Attempt > 1 {
			p.Counts[fanfare.Deferred]--
		}
		p.Counts[e.State]++
		if e.State != fanfare.Deferred {
			cast.rate.add(now)
		}
		if p.First.IsZero() {
			p.First = now
		}
		p.Last = now
		if p.Counts.Settled() == cast.total {
			p.Completed = now
			commit.Completions = append(commit.Completions, fanfare.Completion{Seq: ref.Seq, Progress: *p})
		}
		taken := p.Counts[fanfare.Accepted] + p.Counts[fanfare.Delivered]
		if !cast.allFailedReported && p.Counts[fanfare.Failed] >= allFailedAfter && taken == 0 && p.Counts.Settled() < cast.total {
			cast.allFailedReported = true
			sour = append(sour, ref)
		}
	}
	return sour
}

// applyReturned counts an entry that something came back of. It settles nothing: what it
// moves is settled. The counts of a broadcast that is completed are the store's.
func (b *broadcasts) applyReturned(i int, cast *broadcast, commit *fanfare.Commit) {
	if cast == nil {
		commit.Corrections = append(commit.Corrections, i)
		return
	}
	b.markChanged(cast)
	p := &cast.progress
	p.Counts[fanfare.Accepted]--
	p.Counts[commit.Entries[i].State]++
	if !p.Completed.IsZero() { // by an entry before, in the same group
		commit.Completions = append(commit.Completions, fanfare.Completion{Seq: commit.Entries[i].Delivery.Manifest.Event(), Progress: *p})
	}
}

// markChanged notes that a broadcast has an entry that is about to be kept.
func (b *broadcasts) markChanged(cast *broadcast) {
	if !cast.changed {
		cast.changed = true
		b.changed = append(b.changed, cast)
	}
}

// committed tells of the entries that are kept now, and forgets completed broadcasts.
func (b *broadcasts) committed(day fanfare.Day, completions []fanfare.Completion) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, cast := range b.changed {
		was := cast.pending()
		b.deferred += cast.progress.Counts[fanfare.Deferred] - cast.recorded.Counts[fanfare.Deferred]
		cast.recorded, cast.changed = cast.progress, false
		b.pending += cast.pending() - was
	}
	clear(b.changed)
	b.changed = b.changed[:0]
	for i := range completions {
		delete(b.begun, fanfare.EventRef{Day: day, Seq: completions[i].Seq})
	}
}

// drop forgets the broadcasts of a day.
func (b *broadcasts) drop(day fanfare.Day) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for ref, messages := range b.notBegun {
		if ref.Day == day {
			b.pending -= messages
			delete(b.notBegun, ref)
		}
	}
	for ref, cast := range b.begun {
		if ref.Day == day {
			b.pending -= cast.pending()
			b.deferred -= cast.recorded.Counts[fanfare.Deferred]
			delete(b.begun, ref)
		}
	}
	b.changed = nil // all of that day
}
