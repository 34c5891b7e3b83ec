package mail

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"fanfare.dev/fanfare/internal/jmap/core"
	"fanfare.dev/fanfare/internal/mailbox"
)

// maxKeyword is the largest length of a keyword in bytes.
const maxKeyword = 255

// emailSet is Email/set (RFC 8621, section 4.6). Each new message is a transaction; all changes of keywords are one, and so are all removals.
func (m *Methods) emailSet(ctx context.Context, c *core.Call, a *core.SetArguments) (any, error) {
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
	for _, record := range a.Create {
		made, failed, err := m.createEmail(ctx, c, id, v, record.Value)
		if err != nil {
			return nil, err
		}
		if failed != nil {
			r.DidNotCreate(record.Name, failed)
			continue
		}
		c.Created(record.Name, emailID(made.Email))
		r.DidCreate(record.Name, createdEmail(made))
	}
	if len(a.Create) > 0 && len(a.Update)+len(a.Destroy) > 0 { // the new messages can be changed at once
		if v, err = m.views.current(ctx, id); err != nil {
			return nil, err
		}
	}
	if err := m.updateEmails(ctx, c, id, v, a, r); err != nil {
		return nil, err
	}
	if err := m.destroyEmails(ctx, c, id, v, a.Destroy, r); err != nil {
		return nil, err
	}
	if v, err = m.views.current(ctx, id); err != nil {
		return nil, err
	}
	r.NewState = StateOf(v.state)
	return r, nil
}

// createdEmail returns the properties of a new message that the client does not know.
func createdEmail(m *mailbox.Message) map[string]any {
	return map[string]any{"id": emailID(m.Email), "blobId": blob{email: m.Email}.id(), "threadId": threadID(m.Thread), "size": m.Size}
}

// oneMailbox returns the mailbox of a message from the property mailboxIds.
func oneMailbox(c *core.Call, v *view, ids map[core.ID]*bool) (mailbox.MailboxID, *core.SetError) {
	if len(ids) == 0 {
		return 0, core.Invalid("a message must be in a mailbox", "mailboxIds")
	}
	if len(ids) > 1 {
		return 0, &core.SetError{Type: core.SetTooManyMailboxes, Description: "a message is in exactly one mailbox: maxMailboxesPerEmail is 1"}
	}
	for id, value := range ids {
		if value == nil || !*value {
			return 0, core.Invalid("the values of mailboxIds must be true", "mailboxIds")
		}
		resolved, ok := c.Resolve(id)
		n, ok := parsedMailbox(resolved, ok)
		if _, exists := v.boxes[n]; !ok || !exists {
			return 0, core.Invalid(fmt.Sprintf("the mailbox %.80q does not exist", id), "mailboxIds")
		}
		return n, nil
	}
	return 0, nil
}

// parseKeywords returns the flags and keywords of the property keywords.
func parseKeywords(values map[string]*bool) (flags mailbox.Flags, list []string, failed *core.SetError) {
	for keyword, value := range values {
		if value == nil || !*value {
			return 0, nil, core.Invalid("the values of keywords must be true", "keywords")
		}
		if keyword == "" || len(keyword) > maxKeyword || strings.ContainsFunc(keyword, func(r rune) bool { return r <= ' ' || r > '~' || strings.ContainsRune(`(){]%*"\`, r) }) {
			return 0, nil, core.Invalid(fmt.Sprintf("%.80q is not a keyword: use 1 to 255 characters of ASCII without spaces and ( ) { ] %% * \" \\", keyword), "keywords")
		}
		keyword = strings.ToLower(keyword)
		system := false
		for flag, name := range systemKeywords {
			if name == keyword {
				flags |= flag
				system = true
			}
		}
		if !system {
			list = append(list, keyword)
		}
	}
	slices.Sort(list)
	return flags, list, nil
}

// An emailUpdate is what is to be done with a message.
type emailUpdate struct {
	name           core.ID
	email          mailbox.EmailID
	to             mailbox.MailboxID // 0: it stays
	addFlags       mailbox.Flags
	dropFlags      mailbox.Flags
	addKeywords    []string
	removeKeywords []string
}

// updateEmails changes mailboxes and keywords.
func (m *Methods) updateEmails(ctx context.Context, c *core.Call, id mailbox.AccountID, v *view, a *core.SetArguments, r *core.SetResult) error {
	var updates []*emailUpdate
	for _, change := range a.Update {
		name := core.ID(change.Name)
		u, failed := parseUpdate(c, v, name, change.Value, a.Destroy)
		if failed != nil {
			r.DidNotUpdate(name, failed)
			continue
		}
		updates = append(updates, u)
	}
	gone := map[mailbox.EmailID]bool{}
	fail := map[mailbox.EmailID]*core.SetError{}
	moves := map[mailbox.MailboxID][]mailbox.EmailID{}
	var changes []mailbox.FlagChange
	for _, u := range updates {
		if u.to != 0 {
			moves[u.to] = append(moves[u.to], u.email)
		}
		if u.addFlags != 0 || len(u.addKeywords) > 0 {
			changes = append(changes, mailbox.FlagChange{Emails: []mailbox.EmailID{u.email}, Mode: mailbox.AddFlags, Flags: u.addFlags, Keywords: u.addKeywords})
		}
		if u.dropFlags != 0 || len(u.removeKeywords) > 0 {
			changes = append(changes, mailbox.FlagChange{Emails: []mailbox.EmailID{u.email}, Mode: mailbox.RemoveFlags, Flags: u.dropFlags, Keywords: u.removeKeywords})
		}
	}
	if len(changes) > 0 {
		now, _, err := m.store.UpdateFlags(ctx, id, changes)
		failed := setError(err)
		if err != nil && failed == nil {
			return err
		}
		there := map[mailbox.EmailID]bool{}
		for i := range now {
			there[now[i].Email] = true
		}
		for i := range changes {
			if email := changes[i].Emails[0]; failed != nil {
				fail[email] = failed
			} else if !there[email] {
				gone[email] = true
			}
		}
	}
	for _, to := range slices.Sorted(maps.Keys(moves)) {
		emails := slices.DeleteFunc(moves[to], func(email mailbox.EmailID) bool { return gone[email] || fail[email] != nil })
		if len(emails) == 0 {
			continue
		}
		_, moved, err := m.store.Move(ctx, id, emails, to)
		failed := setError(err)
		if err != nil && failed == nil {
			return err
		}
		there := map[mailbox.EmailID]bool{}
		for i := range moved {
			there[moved[i].Email] = true
		}
		for _, email := range emails {
			if failed != nil {
				fail[email] = failed
			} else if !there[email] {
				gone[email] = true
			}
		}
	}
	for _, u := range updates {
		switch {
		case fail[u.email] != nil:
			r.DidNotUpdate(u.name, fail[u.email])
		case gone[u.email]:
			r.DidNotUpdate(u.name, &core.SetError{Type: core.SetNotFound})
		default:
			r.DidUpdate(u.name, nil)
		}
	}
	return nil
}

// parseUpdate reads the patch of a message. Only mailboxIds and keywords can change.
func parseUpdate(c *core.Call, v *view, name core.ID, text json.RawMessage, destroys []core.ID) (*emailUpdate, *core.SetError) {
	id, ok := c.Resolve(name)
	n, isID := parseEmailID(id)
	message := v.message(n)
	if !ok || !isID || message == nil {
		return nil, &core.SetError{Type: core.SetNotFound}
	}
	if slices.Contains(destroys, name) {
		return nil, &core.SetError{Type: core.SetWillDestroy}
	}
	patch, err := core.ParseObject(text)
	if err != nil {
		return nil, &core.SetError{Type: core.SetInvalidPatch, Description: "the patch cannot be read"}
	}
	for i, p := range patch {
		if ref, is := strings.CutPrefix(p.Name, "mailboxIds/#"); is {
			resolved, ok := c.Resolve(core.ID("#" + ref))
			if !ok {
				return nil, core.Invalid(fmt.Sprintf("the mailbox #%.80s does not exist", ref), "mailboxIds")
			}
			patch[i].Name = "mailboxIds/" + string(resolved)
		}
	}
	current, err := core.Properties(map[string]any{"mailboxIds": map[core.ID]bool{mailboxID(message.Mailbox): true}, "keywords": keywords(message)})
	if err != nil {
		return nil, &core.SetError{Type: core.SetInvalidPatch}
	}
	after, touched, failed := core.ApplyPatch(current, patch)
	if failed != nil {
		return nil, failed
	}
	var changed core.Object
	for _, property := range touched {
		value, err := json.Marshal(after[property])
		if err != nil {
			return nil, &core.SetError{Type: core.SetInvalidPatch}
		}
		changed = append(changed, core.Member{Name: property, Value: value})
	}
	var record struct {
		Mailboxes map[core.ID]*bool `json:"mailboxIds"`
		Keywords  map[string]*bool  `json:"keywords"`
	}
	if failed := core.DecodeProperties(changed, &record); failed != nil {
		return nil, failed
	}
	u := &emailUpdate{name: name, email: message.Email}
	if slices.Contains(touched, "mailboxIds") {
		to, failed := oneMailbox(c, v, record.Mailboxes)
		if failed != nil {
			return nil, failed
		}
		if to != message.Mailbox {
			u.to = to
		}
	}
	if slices.Contains(touched, "keywords") {
		flags, list, failed := parseKeywords(record.Keywords)
		if failed != nil {
			return nil, failed
		}
		visible := message.Flags &^ mailbox.Deleted
		u.addFlags, u.dropFlags = flags&^visible, visible&^flags
		for _, keyword := range list {
			if !hasKeyword(message, keyword) {
				u.addKeywords = append(u.addKeywords, keyword)
			}
		}
		for keyword := range strings.FieldsSeq(message.Keywords) {
			if !slices.Contains(list, strings.ToLower(keyword)) {
				u.removeKeywords = append(u.removeKeywords, keyword)
			}
		}
	}
	return u, nil
}

// destroyEmails removes messages for good.
func (m *Methods) destroyEmails(ctx context.Context, c *core.Call, id mailbox.AccountID, v *view, destroy []core.ID, r *core.SetResult) error {
	var emails []mailbox.EmailID
	names := map[mailbox.EmailID]core.ID{}
	for _, name := range destroy {
		resolved, ok := c.Resolve(name)
		n, isID := parseEmailID(resolved)
		if !ok || !isID || v.message(n) == nil {
			r.DidNotDestroy(name, &core.SetError{Type: core.SetNotFound})
			continue
		}
		if names[n] == "" {
			names[n] = name
			emails = append(emails, n)
		}
	}
	if len(emails) == 0 {
		return nil
	}
	removed, _, err := m.store.Expunge(ctx, id, emails)
	if err != nil {
		return err
	}
	for i := range removed {
		r.Destroyed = append(r.Destroyed, emailID(removed[i].Email))
		delete(names, removed[i].Email)
	}
	for _, name := range names {
		r.DidNotDestroy(name, &core.SetError{Type: core.SetNotFound})
	}
	return nil
}

// emailCopyArguments are those of Email/copy (section 4.7).
type emailCopyArguments struct {
	core.InAccount
	From            core.ID     `json:"fromAccountId"`
	IfFromInState   *string     `json:"ifFromInState"`
	IfInState       *string     `json:"ifInState"`
	Create          core.Object `json:"create"`
	OnSuccess       bool        `json:"onSuccessDestroyOriginal"`
	DestroyIfInStat *string     `json:"destroyFromIfInState"`
}

// emailCopy is Email/copy. A login has one account, so that there is none to copy from.
func (m *Methods) emailCopy(_ context.Context, c *core.Call, a *emailCopyArguments) (any, error) {
	if len(a.Create) > c.Limits.MaxObjectsInSet {
		return nil, core.Fail(core.RequestTooLarge, "create has more records than maxObjectsInSet")
	}
	return nil, copyError(c, a.From)
}
