package mail

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"fanfare.dev/fanfare/internal/jmap/core"
	"fanfare.dev/fanfare/internal/mailbox"
)

// mailboxSetArguments are those of Mailbox/set (section 2.5).
type mailboxSetArguments struct {
	core.SetArguments
	RemoveEmails bool `json:"onDestroyRemoveEmails"`
}

// mailboxRecord has the properties of a Mailbox that a client may set.
type mailboxRecord struct {
	Name       *string           `json:"name"`
	Parent     *core.ID          `json:"parentId"`
	Role       *string           `json:"role"`
	SortOrder  *core.UnsignedInt `json:"sortOrder"`
	Subscribed *bool             `json:"isSubscribed"`
}

const maxSortOrder = 1<<31 - 1

// mailboxSet is Mailbox/set. Each record is a transaction of its own, and a record can be the parent of a later one.
func (m *Methods) mailboxSet(ctx context.Context, c *core.Call, a *mailboxSetArguments) (any, error) {
	if err := a.Check(c); err != nil {
		return nil, err
	}
	id, v, err := m.current(ctx, c)
	if err != nil {
		return nil, err
	}
	if err := checkState(a.IfInState, v); err != nil {
		return nil, err
	}
	r := &core.SetResult{AccountID: a.AccountID, OldState: StateOf(v.state)}
	for _, record := range parentsFirst(a.Create) {
		object, failed, err := m.createMailbox(ctx, c, id, record.Value)
		if err != nil {
			return nil, err
		}
		if failed != nil {
			r.DidNotCreate(record.Name, failed)
			continue
		}
		c.Created(record.Name, object["id"].(core.ID))
		r.DidCreate(record.Name, object)
	}
	for _, change := range a.Update {
		failed, err := m.updateMailbox(ctx, c, id, core.ID(change.Name), change.Value, a.Destroy)
		if err != nil {
			return nil, err
		}
		if failed != nil {
			r.DidNotUpdate(core.ID(change.Name), failed)
			continue
		}
		r.DidUpdate(core.ID(change.Name), nil)
	}
	if err := m.destroyMailboxes(ctx, c, id, a, r); err != nil {
		return nil, err
	}
	v, err = m.views.current(ctx, id)
	if err != nil {
		return nil, err
	}
	r.NewState = StateOf(v.state)
	return r, nil
}

// parentsFirst puts each record after the one that its parentId refers to.
func parentsFirst(records core.Object) core.Object {
	place := map[string]int{}
	for i, record := range records {
		place[record.Name] = i
	}
	var ordered core.Object
	done := make([]bool, len(records))
	var add func(i, depth int)
	add = func(i, depth int) {
		if done[i] || depth > len(records) {
			return
		}
		var of struct {
			Parent string `json:"parentId"`
		}
		if json.Unmarshal(records[i].Value, &of) == nil && len(of.Parent) > 1 && of.Parent[0] == '#' {
			if parent, ok := place[of.Parent[1:]]; ok {
				add(parent, depth+1)
			}
		}
		if !done[i] {
			done[i] = true
			ordered = append(ordered, records[i])
		}
	}
	for i := range records {
		add(i, 0)
	}
	return ordered
}

// parent returns the number of a parent; 0 for null.
func parent(c *core.Call, id *core.ID) (mailbox.MailboxID, *core.SetError) {
	if id == nil {
		return 0, nil
	}
	resolved, ok := c.Resolve(*id)
	n, ok := parsedMailbox(resolved, ok)
	if !ok {
		return 0, core.Invalid(fmt.Sprintf("the mailbox %.80q does not exist", *id), "parentId")
	}
	return n, nil
}

func (m *Methods) createMailbox(ctx context.Context, c *core.Call, id mailbox.AccountID, text json.RawMessage) (map[string]any, *core.SetError, error) {
	properties, err := core.ParseObject(text)
	if err != nil {
		return nil, core.Invalid("the record cannot be read"), nil
	}
	var record mailboxRecord
	if failed := core.DecodeProperties(properties, &record); failed != nil {
		return nil, failed, nil
	}
	if record.Name == nil {
		return nil, core.Invalid("a mailbox must have a name", "name"), nil
	}
	wanted := mailbox.NewMailbox{Name: *record.Name, Subscribed: record.Subscribed}
	var failed *core.SetError
	if wanted.Parent, failed = parent(c, record.Parent); failed != nil {
		return nil, failed, nil
	}
	if record.Role != nil {
		wanted.Role = mailbox.Role(*record.Role)
	}
	if record.SortOrder != nil {
		if *record.SortOrder > maxSortOrder {
			return nil, core.Invalid("sortOrder must be less than 2^31", "sortOrder"), nil
		}
		wanted.SortOrder = uint32(*record.SortOrder)
	}
	box, err := m.store.CreateMailbox(ctx, id, wanted)
	if err != nil {
		return nil, mailboxError(err, record.Role != nil && *record.Role != ""), orNil(err)
	}
	object := mailboxObject(&box, &mailboxCounts{})
	for _, known := range properties {
		if value, ok := object[known.Name]; ok && sameJSON(value, known.Value) {
			delete(object, known.Name)
		}
	}
	object["id"] = mailboxID(box.ID)
	return object, nil, nil
}

// sameJSON reports whether a value is what a client sent.
func sameJSON(value any, sent json.RawMessage) bool {
	text, err := json.Marshal(value)
	return err == nil && string(text) == string(sent)
}

// orNil returns an error of the store unless it is a SetError.
func orNil(err error) error {
	if setError(err) != nil {
		return nil //nolint:nilerr // the record has the error
	}
	return err
}

// mailboxError returns the SetError for a mailbox.
func mailboxError(err error, hasRole bool) *core.SetError {
	failed := setError(err)
	switch {
	case failed == nil:
		return nil
	case errors.Is(err, mailbox.ErrNoMailbox):
		failed.Properties = []string{"parentId"}
	case hasRole && (failed.Properties == nil || errors.Is(err, mailbox.ErrExists)) && failed.Type == core.SetInvalidProperties:
		failed.Properties = append(failed.Properties, "role")
	}
	return failed
}

func (m *Methods) updateMailbox(ctx context.Context, c *core.Call, account mailbox.AccountID, name core.ID, text json.RawMessage, destroys []core.ID) (*core.SetError, error) {
	id, known := c.Resolve(name)
	n, known := parsedMailbox(id, known)
	if !known {
		return &core.SetError{Type: core.SetNotFound}, nil
	}
	if slices.Contains(destroys, name) {
		return &core.SetError{Type: core.SetWillDestroy}, nil
	}
	box, err := m.store.Mailbox(ctx, account, n)
	if err != nil {
		if errors.Is(err, mailbox.ErrNoMailbox) {
			return &core.SetError{Type: core.SetNotFound}, nil
		}
		return nil, err
	}
	patch, err := core.ParseObject(text)
	if err != nil {
		return &core.SetError{Type: core.SetInvalidPatch, Description: "the patch cannot be read"}, nil
	}
	before := mailboxObject(&box, nil)
	current, err := core.Properties(before)
	if err != nil {
		return nil, err
	}
	after, touched, failed := core.ApplyPatch(current, patch)
	if failed != nil {
		return failed, nil
	}
	var changed core.Object
	for _, property := range touched {
		value, err := json.Marshal(after[property])
		if err != nil {
			return nil, err
		}
		old, err := json.Marshal(current[property])
		if err != nil {
			return nil, err
		}
		if string(old) != string(value) {
			changed = append(changed, core.Member{Name: property, Value: value})
		}
	}
	var record mailboxRecord
	if failed := core.DecodeProperties(changed, &record); failed != nil {
		return failed, nil
	}
	change := mailbox.MailboxChange{ID: n, Name: record.Name, Subscribed: record.Subscribed}
	for _, member := range changed {
		switch member.Name {
		case "name":
			if record.Name == nil {
				return core.Invalid("a mailbox must have a name", "name"), nil
			}
		case "parentId":
			of, failed := parent(c, record.Parent)
			if failed != nil {
				return failed, nil
			}
			change.Parent = &of
		case "role":
			role := mailbox.NoRole
			if record.Role != nil {
				role = mailbox.Role(*record.Role)
			}
			change.Role = &role
		case "sortOrder":
			order := uint32(0)
			if record.SortOrder != nil {
				if *record.SortOrder > maxSortOrder {
					return core.Invalid("sortOrder must be less than 2^31", "sortOrder"), nil
				}
				order = uint32(*record.SortOrder)
			}
			change.SortOrder = &order
		case "isSubscribed":
			if record.Subscribed == nil {
				return core.Invalid("isSubscribed must be true or false", "isSubscribed"), nil
			}
		}
	}
	if len(changed) == 0 {
		return nil, nil
	}
	_, err = m.store.UpdateMailbox(ctx, account, change)
	return mailboxError(err, change.Role != nil), orNil(err)
}

// destroyMailboxes destroys mailboxes. Those in others of the list go first.
func (m *Methods) destroyMailboxes(ctx context.Context, c *core.Call, id mailbox.AccountID, a *mailboxSetArguments, r *core.SetResult) error {
	waiting := slices.Clone(a.Destroy)
	seen := map[core.ID]bool{}
	for progress := true; progress && len(waiting) > 0; {
		progress = false
		var children []core.ID
		for _, name := range waiting {
			if seen[name] {
				continue
			}
			resolved, ok := c.Resolve(name)
			n, ok := parsedMailbox(resolved, ok)
			if !ok {
				seen[name] = true
				r.DidNotDestroy(name, &core.SetError{Type: core.SetNotFound})
				continue
			}
			err := m.store.RemoveMailbox(ctx, id, mailbox.MailboxRemoval{ID: n, WithMessages: a.RemoveEmails})
			switch failed := setError(err); {
			case err == nil:
				seen[name], progress = true, true
				r.Destroyed = append(r.Destroyed, resolved)
				delete(r.NotDestroyed, name)
			case errors.Is(err, mailbox.ErrHasChild):
				children = append(children, name)
				r.DidNotDestroy(name, failed)
			case errors.Is(err, mailbox.ErrNoMailbox):
				seen[name] = true
				r.DidNotDestroy(name, &core.SetError{Type: core.SetNotFound})
			case failed != nil:
				seen[name] = true
				r.DidNotDestroy(name, failed)
			default:
				return err
			}
		}
		waiting = children
	}
	return nil
}
