package mail

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"fanfare.dev/fanfare/internal/jmap/core"
	"fanfare.dev/fanfare/internal/mailbox"
)

// threadGet is Thread/get (RFC 8621, section 3.1).
func (m *Methods) threadGet(ctx context.Context, c *core.Call, a *core.GetArguments) (any, error) {
	if err := a.Check(c, []string{"id", "emailIds"}); err != nil {
		return nil, err
	}
	_, v, err := m.current(ctx, c)
	if err != nil {
		return nil, err
	}
	r := &core.GetResult{AccountID: a.AccountID, State: StateOf(v.state), List: []any{}, NotFound: []core.ID{}}
	if a.IDs == nil {
		ids := []core.ID{}
		v.thread(0)
		for id := range v.threads {
			ids = append(ids, threadID(id))
		}
		a.IDs = &ids
		if err := a.Check(c, nil); err != nil {
			return nil, err
		}
	}
	for _, id := range *a.IDs {
		n, _ := parseThreadID(id)
		messages := v.thread(n)
		if len(messages) == 0 {
			r.NotFound = append(r.NotFound, id)
			continue
		}
		emails := make([]core.ID, len(messages))
		for i, message := range messages {
			emails[i] = emailID(message.Email)
		}
		r.List = append(r.List, a.Pick(map[string]any{"id": id, "emailIds": emails}))
	}
	return r, nil
}

// threadChanges is Thread/changes (section 3.2).
func (m *Methods) threadChanges(ctx context.Context, c *core.Call, a *core.ChangesArguments) (any, error) {
	most, err := a.Check()
	if err != nil {
		return nil, err
	}
	since, changes, v, err := m.since(ctx, c, a.SinceState)
	if err != nil {
		return nil, err
	}
	return threadHistory(since, changes, v).result(a, most, position{v.state, allRecords}), nil
}

// A life is the time for which a message existed: from a ModSeq until before another one.
type life struct {
	email      mailbox.EmailID
	from, gone mailbox.ModSeq
}

const never = mailbox.ModSeq(allRecords)

// threadLives are the messages of the threads that changed after a position.
type threadLives struct {
	since  position
	lives  map[mailbox.ThreadID][]life
	events []position // at which a message came or went
}

// threadHistory collects the messages of the threads that changed.
func threadHistory(since position, changes *mailbox.Changes, v *view) *threadLives {
	h := &threadLives{since: since, lives: map[mailbox.ThreadID][]life{}}
	known := map[mailbox.EmailID]bool{}
	put := func(thread mailbox.ThreadID, l life) {
		known[l.email] = true
		if gone := (position{l.gone, int64(thread)}); l.gone != never && !since.before(gone) {
			return
		}
		h.lives[thread] = append(h.lives[thread], l)
		for _, at := range []position{{l.from, int64(thread)}, {l.gone, int64(thread)}} {
			if at.seq != never && since.before(at) {
				h.events = append(h.events, at)
			}
		}
	}
	for i := range changes.Messages {
		m := &changes.Messages[i]
		l := life{m.Email, m.Created, never}
		if m.Flags&mailbox.Deleted != 0 {
			l.gone = m.ModSeq
		}
		put(m.Thread, l)
	}
	for _, r := range changes.Removed {
		if r.Destroyed {
			put(r.Thread, life{r.Email, r.Created, r.ModSeq})
		}
	}
	for thread := range h.lives {
		for _, m := range v.thread(thread) {
			if !known[m.Email] {
				h.lives[thread] = append(h.lives[thread], life{m.Email, m.Created, never})
			}
		}
	}
	slices.SortFunc(h.events, func(x, y position) int {
		return cmp.Or(cmp.Compare(x.seq, y.seq), cmp.Compare(x.record, y.record))
	})
	return h
}

// at returns the messages that a thread had at a position, and whether it had any.
func (h *threadLives) at(thread mailbox.ThreadID, p position) (emails map[mailbox.EmailID]bool, some bool) {
	seq := p.seq
	if int64(thread) > p.record {
		seq--
	}
	emails = map[mailbox.EmailID]bool{}
	for _, l := range h.lives[thread] {
		if l.from <= seq && seq < l.gone {
			emails[l.email] = true
		}
	}
	return emails, len(emails) > 0
}

// result compares the threads at the position with those at a later one: the last one up to which at most most threads changed.
func (h *threadLives) result(a *core.ChangesArguments, most int, end position) *core.ChangesResult {
	r := &core.ChangesResult{AccountID: a.AccountID, OldState: h.since.String(), Created: []core.ID{}, Updated: []core.ID{}, Destroyed: []core.ID{}}
	var threads []mailbox.ThreadID
	seen := map[mailbox.ThreadID]bool{}
	to := end
	for i, e := range h.events {
		thread := mailbox.ThreadID(e.record)
		if seen[thread] {
			continue
		}
		if most > 0 && len(threads) == most {
			to, r.More = h.events[i-1], true
			break
		}
		seen[thread] = true
		threads = append(threads, thread)
	}
	r.NewState = to.String()
	for _, thread := range threads {
		before, was := h.at(thread, h.since)
		after, is := h.at(thread, to)
		switch {
		case !was && is:
			r.Created = append(r.Created, threadID(thread))
		case was && !is:
			r.Destroyed = append(r.Destroyed, threadID(thread))
		case !maps.Equal(before, after):
			r.Updated = append(r.Updated, threadID(thread))
		}
	}
	return r
}
