// Package push tells clients of JMAP which types of an account changed (RFC 8620, section 7). EventSource and WebSocket connections use it, and
// Subscriptions send the changes to URLs of clients.
//
// Subscriptions are records of the account in package mailbox, and belong to the credential with which they were made. A subscription gets the state of
// its account after its verification and after a start of the server, and then each change. A message that the URL refuses is sent again, with the
// changes since then.
//
// State. A Watcher belongs to one connection, and has the newest state that the store reported and the one that the client knows. All changes
// between two reads become one.
//
// Failure. A watcher loses no change: the store reports each state, and a client compares states after a reconnection.
package push

import (
	"context"
	"errors"
	"slices"
	"sync"

	"fanfare.dev/fanfare/internal/jmap/mail"
	"fanfare.dev/fanfare/internal/mailbox"
)

// Types are the types whose changes are reported. EmailDelivery changes with each new message (RFC 8621, section 1.5). Identities and submissions
// change rarely, and are reported only then.
var Types = []string{"Email", "EmailDelivery", "EmailSubmission", "Identity", "Mailbox", "Quota", "Thread"}

// A StateChange says which types changed (RFC 8620, section 7.1).
type StateChange struct {
	Type    string                       `json:"@type"`
	Changed map[string]map[string]string `json:"changed"`
	Push    string                       `json:"pushState,omitempty"` // RFC 8887, section 4.3.5
}

// A Watcher reports the changes of an account.
type Watcher struct {
	store   *mailbox.Store
	account mailbox.AccountID
	types   []string // nil: all
	stop    func()
	changed chan struct{} // has a value while newest may be ahead of known

	mu     sync.Mutex
	newest mailbox.ModSeq
	known  mailbox.ModSeq // belongs to the caller of Next
}

// Watch reports the changes of an account after a state, of some types or of all. The caller calls Stop.
func Watch(ctx context.Context, store *mailbox.Store, account mailbox.AccountID, types []string, known mailbox.ModSeq) (*Watcher, error) {
	w := &Watcher{store: store, account: account, types: types, changed: make(chan struct{}, 1), known: known}
	w.stop = store.Watch(account, w.note)
	of, err := store.Account(ctx, account)
	if err != nil {
		w.stop()
		return nil, err
	}
	if known == 0 || known > of.State {
		w.known = of.State
	}
	w.note(of.State)
	return w, nil
}

func (w *Watcher) note(state mailbox.ModSeq) {
	w.mu.Lock()
	w.newest = max(w.newest, state)
	w.mu.Unlock()
	select {
	case w.changed <- struct{}{}:
	default:
	}
}

// Changed has a value when Next may have a change.
func (w *Watcher) Changed() <-chan struct{} { return w.changed }

// Stop ends the watch.
func (w *Watcher) Stop() { w.stop() }

// everything returns a change of all types to the state that the client knows.
func (w *Watcher) everything() *StateChange {
	types := map[string]string{}
	for _, t := range Types {
		types[t] = mail.StateOf(w.known)
	}
	return &StateChange{Type: "StateChange", Changed: map[string]map[string]string{string(mail.AccountID(w.account)): types}}
}

// ErrEnded is the error of Next after the account was removed or disabled.
var ErrEnded = errors.New("the account does not exist any more or is disabled")

// Next returns what changed since the last call, or nil.
func (w *Watcher) Next(ctx context.Context) (*StateChange, error) {
	w.mu.Lock()
	newest := w.newest
	w.mu.Unlock()
	of, err := w.store.Account(ctx, w.account) // after newest, so that no change of a disabled account is reported
	if errors.Is(err, mailbox.ErrNoAccount) || err == nil && of.Disabled {
		return nil, ErrEnded
	}
	if err != nil {
		return nil, err
	}
	if newest <= w.known {
		return nil, nil
	}
	known := w.known
	w.known = newest
	state := mail.StateOf(newest)
	types := map[string]string{}
	for _, t := range Types {
		if w.types != nil && !slices.Contains(w.types, t) {
			continue
		}
		if t == "EmailDelivery" {
			delivered, err := w.delivered(ctx, known)
			if err != nil {
				return nil, err
			}
			if delivered == 0 {
				continue
			}
			types[t] = mail.StateOf(delivered)
			continue
		}
		if kind, rare := recordKinds[t]; rare {
			changed, err := w.records(ctx, kind, known)
			if err != nil {
				return nil, err
			}
			if changed == 0 {
				continue
			}
		}
		types[t] = state
	}
	if len(types) == 0 {
		return nil, nil
	}
	return &StateChange{Type: "StateChange", Changed: map[string]map[string]string{string(mail.AccountID(w.account)): types}, Push: state}, nil
}

var recordKinds = map[string]mailbox.RecordKind{"EmailSubmission": mailbox.SubmissionRecord, "Identity": mailbox.IdentityRecord}

// records returns how many records of a kind changed after a state.
func (w *Watcher) records(ctx context.Context, kind mailbox.RecordKind, since mailbox.ModSeq) (int, error) {
	list, _, err := w.store.RecordChanges(ctx, w.account, kind, since)
	if errors.Is(err, mailbox.ErrOldModSeq) {
		return 1, nil // so much changed that the client must look
	}
	return len(list), err
}

// delivered returns the ModSeq of the newest message that came after a state, or 0.
func (w *Watcher) delivered(ctx context.Context, since mailbox.ModSeq) (newest mailbox.ModSeq, err error) {
	c, err := w.store.Changes(ctx, w.account, 0, since)
	if errors.Is(err, mailbox.ErrOldModSeq) {
		return w.known, nil // so much changed that a message came
	}
	for i := range c.Messages {
		if m := &c.Messages[i]; m.Created > since {
			newest = max(newest, m.Created)
		}
	}
	return newest, err
}
