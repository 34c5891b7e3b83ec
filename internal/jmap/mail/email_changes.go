package mail

import (
	"context"

	"fanfare.dev/fanfare/internal/jmap/core"
	"fanfare.dev/fanfare/internal/mailbox"
)

// emailChanges is Email/changes (RFC 8621, section 4.3). A message that got the flag Deleted is destroyed; one that lost it is updated.
func (m *Methods) emailChanges(ctx context.Context, c *core.Call, a *core.ChangesArguments) (any, error) {
	id, err := account(c)
	if err != nil {
		return nil, err
	}
	if _, err := a.Check(); err != nil {
		return nil, err
	}
	since, err := parseState(*a.SinceState)
	if err != nil {
		return nil, err
	}
	changes, err := m.store.Changes(ctx, id, 0, since.since())
	if isOld(err) {
		return nil, errCannotCalculate
	}
	if err != nil {
		return nil, accountError(err)
	}
	return changesOf(a, since, changes.State, emailEvents(since, &changes), func(n int64) core.ID { return emailID(mailbox.EmailID(n)) })
}

// emailEvents returns what happened to messages.
func emailEvents(since position, changes *mailbox.Changes) []event {
	h := newHistory(since)
	for i := range changes.Messages {
		m := &changes.Messages[i]
		h.put(int64(m.Email), m.Created, m.ModSeq, m.Flags&mailbox.Deleted != 0)
	}
	for _, r := range changes.Removed {
		if r.Destroyed {
			h.put(int64(r.Email), r.Created, r.ModSeq, true)
		}
	}
	return h.list()
}
