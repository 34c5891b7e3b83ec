package notifybc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/compat/notifybc/importer"
	"fanfare.dev/fanfare/internal/people"
	"fanfare.dev/fanfare/internal/store/control"
)

// errExists is importer.ErrExists for the check of a put, which returns only errors of this type.
var errExists = &fanfare.Error{Code: fanfare.Conflict, Message: importer.ErrExists.Error()}

// ImportSubscriptions stores the subscriptions of an export whose ids do not exist, with their ids, codes, states and all members.
func (a *API) ImportSubscriptions(ctx context.Context, documents []map[string]json.RawMessage) (results []error, err error) {
	results = make([]error, len(documents))
	puts, at := make([]people.SubscriptionPut, 0, len(documents)), make([]int, 0, len(documents))
	for i, document := range documents {
		p, err := a.imported(ctx, document)
		if err != nil {
			results[i] = err
			continue
		}
		puts, at = append(puts, p), append(at, i)
	}
	if len(puts) == 0 {
		return results, nil
	}
	outcomes := make([]people.PutResult, len(puts))
	if err := a.Subscriptions.PutSubscriptions(ctx, a.Settings.Service, puts, outcomes); err != nil {
		return nil, err
	}
	for i := range outcomes {
		switch err := outcomes[i].Err; {
		case err == nil:
		case errors.Is(err, errExists):
			results[at[i]] = importer.ErrExists
		default:
			results[at[i]] = err
		}
	}
	return results, nil
}

// imported returns a subscription of an export as a put.
func (a *API) imported(ctx context.Context, m Members) (p people.SubscriptionPut, err error) {
	kept := Members{}
	for _, name := range fixedMembers {
		if v, ok := m[name]; ok {
			kept[name] = v
		}
	}
	s := &subscription{}
	if s.id, err = m.text("id"); err != nil {
		return p, err
	}
	if err := people.CheckID(s.id); err != nil {
		return p, err
	}
	if err := s.take(m); err != nil {
		return p, err
	}
	for name, v := range kept {
		s.members[name] = v
	}
	if p, err = a.put(ctx, s); err != nil {
		return p, err
	}
	p.Check = func(is *people.Subscription) error {
		if is != nil {
			return errExists
		}
		return nil
	}
	return p, nil
}

// ImportNotifications stores the notifications of an export whose ids do not exist. One that is not due yet is sent when it is due; no
// other is sent again.
func (a *API) ImportNotifications(ctx context.Context, documents []map[string]json.RawMessage) (results []error, err error) {
	results = make([]error, len(documents))
	var put []control.NotifyBCRecord
	var due []*notification
	seen := map[string]bool{}
	for i, document := range documents {
		m := Members(document)
		n := &notification{Members: m}
		if n.id, results[i] = m.text("id"); results[i] != nil {
			continue
		}
		delete(m, "id")
		old, err := a.Records.NotifyBCRecord(ctx, control.NotifyBCKey{Service: a.Settings.Service, Kind: kindNotification, ID: n.id})
		if err != nil {
			return nil, err
		}
		if old != nil || seen[n.id] {
			results[i] = importer.ErrExists
			continue
		}
		seen[n.id] = true
		n.Host = n.text("httpHost")
		pending := n.text("state") == stateNew && n.channel() != channelInApp && n.dueAt().After(a.Clock.Now())
		if pending {
			if err := n.check(); err != nil {
				results[i] = fmt.Errorf("the notification cannot be sent when it is due: %w", err)
				continue
			}
			due = append(due, n)
		}
		r, err := a.storedRecord(n)
		if err != nil {
			return nil, err
		}
		if put = append(put, r); pending {
			put = append(put, control.NotifyBCRecord{NotifyBCKey: a.pendingKey(n.id), Created: r.Created, Updated: max(n.dueAt().UnixMilli(), 0)})
		}
	}
	if len(put) > 0 {
		if err := a.Records.ChangeNotifyBCRecords(ctx, put); err != nil {
			return nil, err
		}
	}
	for _, n := range due {
		a.work.add(n.id, n.dueAt())
	}
	return results, nil
}
