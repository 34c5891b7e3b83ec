package record

import (
	"maps"
	"sync"
	"time"

	"fanfare.dev/fanfare"
)

// board has the progress of all open broadcasts.
type board struct {
	mu   sync.Mutex
	open map[fanfare.EventRef]*broadcast
}

type broadcast struct {
	messages int64
	progress fanfare.Progress
	sour     bool // was told
}

func newBoard() *board { return &board{open: map[fanfare.EventRef]*broadcast{}} }

// Begin tells the recorder of a frozen broadcast, with what is settled of it
// already. A second Begin of the same one changes nothing.
func (r *Recorder) Begin(ref fanfare.EventRef, messages int64, so fanfare.Progress) {
	r.open.mu.Lock()
	defer r.open.mu.Unlock()
	if r.open.open[ref] == nil {
		r.open.open[ref] = &broadcast{messages: messages, progress: so}
	}
}

// Progress returns how far an open broadcast has come; false if it is not open.
// Deliveries without an entry are counted as pending.
func (r *Recorder) Progress(ref fanfare.EventRef) (fanfare.Progress, bool) {
	r.open.mu.Lock()
	defer r.open.mu.Unlock()
	b := r.open.open[ref]
	if b == nil {
		return fanfare.Progress{}, false
	}
	p := b.progress
	p.Counts[fanfare.Pending] = b.messages - p.Counts.Total()
	return p, true
}

// Open lists the broadcasts that are not completed.
func (r *Recorder) Open() []fanfare.EventRef {
	r.open.mu.Lock()
	defer r.open.mu.Unlock()
	refs := make([]fanfare.EventRef, 0, len(r.open.open))
	for ref := range r.open.open {
		refs = append(refs, ref)
	}
	return refs
}

// apply counts entries of one day that are about to be kept, adds the
// completions that follow from them to the commit, and returns the broadcasts
// that have turned sour. A commit that fails for good ends the recorder, so
// counts are never taken back.
func (b *board) apply(entries []fanfare.Entry, commit *fanfare.Commit, now time.Time) (sour []fanfare.EventRef) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := range entries {
		e := &entries[i]
		ref := fanfare.EventRef{Day: e.Delivery.Day, Seq: e.Delivery.Manifest.Event()}
		cast := b.open[ref]
		if cast == nil {
			continue // was completed: a receipt or a bounce
		}
		p := &cast.progress
		if e.Attempt > 1 {
			p.Counts[fanfare.Deferred]--
		}
		p.Counts[e.State]++
		if p.First.IsZero() {
			p.First = now
		}
		p.Last = now
		if p.Counts.Settled() == cast.messages {
			p.Completed = now
			commit.Completions = append(commit.Completions, fanfare.Completion{Seq: ref.Seq, Progress: *p})
		}
		taken := p.Counts[fanfare.Accepted] + p.Counts[fanfare.Delivered]
		if !cast.sour && p.Counts[fanfare.Failed] >= sourAfter && taken == 0 && p.Counts.Settled() < cast.messages {
			cast.sour = true
			sour = append(sour, ref)
		}
	}
	return sour
}

// close forgets completed broadcasts.
func (b *board) close(day fanfare.Day, completions []fanfare.Completion) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := range completions {
		delete(b.open, fanfare.EventRef{Day: day, Seq: completions[i].Seq})
	}
}

// drop forgets the broadcasts of a day.
func (b *board) drop(day fanfare.Day) {
	b.mu.Lock()
	defer b.mu.Unlock()
	maps.DeleteFunc(b.open, func(ref fanfare.EventRef, _ *broadcast) bool { return ref.Day == day })
}
