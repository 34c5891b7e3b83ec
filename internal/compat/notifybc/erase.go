package notifybc

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"fanfare.dev/fanfare/internal/compat/notifybc/roles"
	"fanfare.dev/fanfare/internal/store/control"
)

// People finds and removes people in the records of the API, whether the server offers the API or not.
type People struct{ Records Records }

// kindBounce and kindBounceAddress are the kinds of the records of package bounces.
const (
	kindBounce        = "bounce"
	kindBounceAddress = "bounce-address"
)

// isOneOf reports whether a name is that of a person, in any case.
func isOneOf(names []string, name string) bool {
	return name != "" && slices.ContainsFunc(names, func(one string) bool { return strings.EqualFold(one, name) })
}

// each visits the records of a kind.
func (p People) each(ctx context.Context, service, kind string, visit func(*control.NotifyBCRecord) error) error {
	for after := ""; ; {
		list, err := p.Records.NotifyBCRecords(ctx, service, kind, after, pageSize)
		if err != nil {
			return err
		}
		for i := range list {
			after = list[i].ID
			if err := visit(&list[i]); err != nil {
				return err
			}
		}
		if len(list) < pageSize {
			return nil
		}
	}
}

// An ExportedRecord is a record about a person, as clients of the API see it.
type ExportedRecord struct {
	IsBounce bool // otherwise it is a notification
	JSON     []byte
}

// Export visits the notifications to people with one of the names, which are addresses and ids, those that they have read or deleted, without the other
// people in them, and the bounces of their addresses.
func (p People) Export(ctx context.Context, service string, names []string, visit func(*ExportedRecord) error) error {
	err := p.each(ctx, service, kindNotification, func(r *control.NotifyBCRecord) error {
		n, err := decodeNotification(r)
		if err != nil {
			return err
		}
		found := isOneOf(names, n.text("userChannelId")) || isOneOf(names, n.text("userId"))
		for _, name := range userLists {
			users := n.users(name)
			own := slices.DeleteFunc(slices.Clone(users), func(user string) bool { return !isOneOf(names, user) })
			if found = found || len(own) > 0; len(own) < len(users) {
				n.Members.set(name, own)
			}
		}
		own, failed := n.failures(func(address string) bool { return isOneOf(names, address) })
		if found = found || failed; !found {
			return nil
		}
		if _, has := n.Members["dispatch"]; has {
			n.Members.set("dispatch", own)
		}
		n.forgetCallers(func(id string) bool { return !isOneOf(names, id) })
		return visit(&ExportedRecord{JSON: n.record().encoded()})
	})
	if err != nil {
		return err
	}
	return p.each(ctx, service, kindBounce, func(r *control.NotifyBCRecord) error {
		m := Members{}
		if err := json.Unmarshal([]byte(r.Body), &m); err != nil {
			return err
		}
		if address, _ := m.text("userChannelId"); !isOneOf(names, address) {
			return nil
		}
		m.set("id", r.ID)
		return visit(&ExportedRecord{IsBounce: true, JSON: m.encoded()})
	})
}

// userLists are the members of a notification to all that name users.
var userLists = []string{"readBy", "deletedBy"}

// failures returns the failed outcomes in the dispatch of an imported notification that keep selects by their addresses, and whether there are any.
func (n *notification) failures(keep func(address string) bool) (dispatch Members, found bool) {
	dispatch = Members{}
	var all Members
	var list []Members
	if json.Unmarshal(n.Members["dispatch"], &all) != nil || json.Unmarshal(all["failed"], &list) != nil {
		return dispatch, false
	}
	list = slices.DeleteFunc(list, func(one Members) bool {
		address, _ := one.text("userChannelId")
		return !keep(address)
	})
	if len(list) == 0 {
		return dispatch, false
	}
	dispatch.set("failed", list)
	return dispatch, true
}

// forgetCallers leaves only the roles of those who created and updated the notification, if forget selects their ids. It reports whether there were any.
func (n *notification) forgetCallers(forget func(id string) bool) (found bool) {
	for _, name := range []string{"createdBy", "updatedBy"} {
		var c roles.Caller
		if json.Unmarshal(n.Members[name], &c) == nil && c.SecurityID != "" && forget(c.SecurityID) {
			n.Members.set(name, roles.Caller{Role: c.Role})
			found = true
		}
	}
	return found
}

// Erase deletes the notifications to people with one of the names, which are addresses and ids, their marks in the notifications to all, and the bounces
// of their addresses.
func (p People) Erase(ctx context.Context, service string, names []string) error {
	err := p.each(ctx, service, kindNotification, func(r *control.NotifyBCRecord) error { return p.eraseFrom(ctx, r, names) })
	if err != nil {
		return err
	}
	erased := map[string]bool{} // ids of bounces
	err = p.each(ctx, service, kindBounce, func(r *control.NotifyBCRecord) error {
		m := Members{}
		if err := json.Unmarshal([]byte(r.Body), &m); err != nil {
			return err
		}
		if address, _ := m.text("userChannelId"); !isOneOf(names, address) {
			return nil
		}
		erased[r.ID] = true
		return p.Records.EraseNotifyBCRecords(ctx, nil, r.NotifyBCKey)
	})
	if err != nil || len(erased) == 0 {
		return err
	}
	return p.each(ctx, service, kindBounceAddress, func(r *control.NotifyBCRecord) error {
		m := Members{}
		if err := json.Unmarshal([]byte(r.Body), &m); err != nil {
			return err
		}
		if id, _ := m.text("bounce"); !erased[id] {
			return nil
		}
		return p.Records.EraseNotifyBCRecords(ctx, nil, r.NotifyBCKey)
	})
}

// eraseFrom removes people from one notification.
func (p People) eraseFrom(ctx context.Context, r *control.NotifyBCRecord, names []string) error {
	n, err := decodeNotification(r)
	if err != nil {
		return err
	}
	if isOneOf(names, n.text("userChannelId")) || isOneOf(names, n.text("userId")) {
		pending := r.NotifyBCKey
		pending.Kind = kindPending
		return p.Records.EraseNotifyBCRecords(ctx, nil, r.NotifyBCKey, pending)
	}
	changed := n.forgetCallers(func(id string) bool { return isOneOf(names, id) })
	for _, name := range userLists {
		users := n.users(name)
		if rest := slices.DeleteFunc(slices.Clone(users), func(user string) bool { return isOneOf(names, user) }); len(rest) < len(users) {
			n.Members.set(name, rest)
			changed = true
		}
	}
	if _, failed := n.failures(func(address string) bool { return isOneOf(names, address) }); failed {
		var dispatch Members
		if err := json.Unmarshal(n.Members["dispatch"], &dispatch); err != nil {
			return err
		}
		delete(dispatch, "failed")
		if rest, others := n.failures(func(address string) bool { return !isOneOf(names, address) }); others {
			dispatch["failed"] = rest["failed"]
		}
		n.Members.set("dispatch", dispatch)
		changed = true
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
	return p.Records.EraseNotifyBCRecords(ctx, []control.NotifyBCRecord{kept})
}
