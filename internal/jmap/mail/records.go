package mail

import (
	"context"
	"errors"
	"fmt"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/jmap/core"
	"fanfare.dev/fanfare/internal/mailbox"
)

// recordChanges is /changes of a type whose records are those of the store. shows reports whether a record exists for JMAP.
func (m *Methods) recordChanges(ctx context.Context, c *core.Call, a *core.ChangesArguments, kind mailbox.RecordKind, prefix string, shows func(*mailbox.Record) bool) (any, error) {
	if _, err := a.Check(); err != nil {
		return nil, err
	}
	since, err := parseState(*a.SinceState)
	if err != nil {
		return nil, err
	}
	h, state, err := m.recordHistory(ctx, c, since, kind, shows)
	if err != nil {
		return nil, err
	}
	return changesOf(a, since, state, h.list(), func(n int64) core.ID { return recordID(prefix, mailbox.RecordID(n)) })
}

// recordHistory returns what happened to the records of a kind, and the state of the account.
func (m *Methods) recordHistory(ctx context.Context, c *core.Call, since position, kind mailbox.RecordKind, shows func(*mailbox.Record) bool) (*history, mailbox.ModSeq, error) {
	id, err := account(c)
	if err != nil {
		return nil, 0, err
	}
	list, state, err := m.store.RecordChanges(ctx, id, kind, since.since())
	if isOld(err) {
		return nil, 0, errCannotCalculate
	}
	if err != nil {
		return nil, 0, accountError(err)
	}
	h := newHistory(since)
	for i := range list {
		h.put(int64(list[i].ID), list[i].Created, list[i].Changed, list[i].Removed || !shows(&list[i]))
	}
	return h, state, nil
}

// records returns the records of a kind, and the state of the account.
func (m *Methods) records(ctx context.Context, c *core.Call, kind mailbox.RecordKind) (mailbox.AccountID, []mailbox.Record, mailbox.ModSeq, error) {
	id, err := account(c)
	if err != nil {
		return 0, nil, 0, err
	}
	list, state, err := m.store.Records(ctx, id, kind)
	return id, list, state, accountError(err)
}

// checkModSeq refuses a /set for another state.
func checkModSeq(wanted *string, state mailbox.ModSeq) error {
	if wanted != nil && *wanted != StateOf(state) {
		return core.Fail(core.StateMismatch, "")
	}
	return nil
}

// stateNow returns the state of an account.
func (m *Methods) stateNow(ctx context.Context, id mailbox.AccountID) (string, error) {
	of, err := m.store.Account(ctx, id)
	return StateOf(of.State), accountError(err)
}

// recordError returns the SetError for an error of a change of a record, or nil if the call has to fail as a whole.
func recordError(err error) *core.SetError {
	if failed, ok := errors.AsType[*core.SetError](err); ok {
		return failed
	}
	switch {
	case errors.Is(err, mailbox.ErrNoRecord):
		return &core.SetError{Type: core.SetNotFound}
	case errors.Is(err, mailbox.ErrTooMany):
		return &core.SetError{Type: core.SetOverQuota, Description: err.Error()}
	case fanfare.CodeOf(err) == fanfare.Unavailable, fanfare.CodeOf(err) == fanfare.DiskFull:
		return &core.SetError{Type: core.SetServerFail, Description: fmt.Sprint(err)}
	}
	return nil
}
