package notifybc

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"fanfare.dev/fanfare/internal/store/control"
)

// Eraser removes people from the records of the API, whether the server offers the API or not.
type Eraser struct{ Records Records }

// Erase deletes the notifications to people with one of the names, which are addresses and ids, and their reading marks in
// the notifications to all.
func (e Eraser) Erase(ctx context.Context, service string, names []string) error {
	for after := ""; ; {
		list, err := e.Records.NotifyBCRecords(ctx, service, kindNotification, after, pageSize)
		if err != nil {
			return err
		}
		for i := range list {
			after = list[i].ID
			if err := e.eraseFrom(ctx, &list[i], names); err != nil {
				return err
			}
		}
		if len(list) < pageSize {
			return nil
		}
	}
}

// eraseFrom removes people from one notification.
func (e Eraser) eraseFrom(ctx context.Context, r *control.NotifyBCRecord, names []string) error {
	isErased := func(name string) bool {
		return name != "" && slices.ContainsFunc(names, func(one string) bool { return strings.EqualFold(one, name) })
	}
	n, err := decodeNotification(r)
	if err != nil {
		return err
	}
	if isErased(n.text("userChannelId")) || isErased(n.text("userId")) {
		pending := r.NotifyBCKey
		pending.Kind = kindPending
		return e.Records.EraseNotifyBCRecords(ctx, nil, r.NotifyBCKey, pending)
	}
	changed := false
	for _, name := range []string{"readBy", "deletedBy"} {
		users := n.users(name)
		if rest := slices.DeleteFunc(slices.Clone(users), isErased); len(rest) < len(users) {
			n.Members.set(name, rest)
			changed = true
		}
	}
	if !changed {
		return nil
	}
	body, err := json.Marshal(n)
	if err != nil {
		return err
	}
	kept := *r
	kept.Body = string(body)
	return e.Records.EraseNotifyBCRecords(ctx, []control.NotifyBCRecord{kept})
}
