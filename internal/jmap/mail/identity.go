package mail

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"fanfare.dev/fanfare/internal/jmap/core"
	"fanfare.dev/fanfare/internal/mail/address"
	"fanfare.dev/fanfare/internal/mail/submission"
	"fanfare.dev/fanfare/internal/mailbox"
)

// Bounds of identities.
const (
	maxIdentities     = 100
	maxSignature      = 64 << 10 // bytes
	maxIdentityName   = 500
	maxIdentityCopies = 20 // addresses in replyTo, and in bcc
)

// identityProperties are those of an Identity (RFC 8621, section 6).
var identityProperties = []string{"id", "name", "email", "replyTo", "bcc", "textSignature", "htmlSignature", "mayDelete"}

// An emailAddress is an EmailAddress (RFC 8621, section 4.1.2.3).
type emailAddress struct {
	Name  *string `json:"name"`
	Email string  `json:"email"`
}

// An identity is what a client sends mail with. Its JSON is the body of a record.
type identity struct {
	Name    string         `json:"name"`
	Email   string         `json:"email"`
	ReplyTo []emailAddress `json:"replyTo"`
	BCC     []emailAddress `json:"bcc"`
	Text    string         `json:"textSignature"`
	HTML    string         `json:"htmlSignature"`
	Default bool           `json:"default,omitempty"` // the server made it: it has the address of the account, and stays
	Alias   bool           `json:"alias,omitempty"`   // the server made it for an alias, and removes it with the alias
}

// parseIdentity reads an identity of an account.
func parseIdentity(r *mailbox.Record, of *mailbox.Account) (i identity, err error) {
	if err := json.Unmarshal([]byte(r.Body), &i); err != nil {
		return i, fmt.Errorf("identity %d of account %d: %w", r.ID, r.Account, err)
	}
	if i.Default {
		i.Email = of.Address // which may have changed
	}
	return i, nil
}

func (i *identity) object(id mailbox.RecordID) map[string]any {
	object := map[string]any{"id": recordID(identityPrefix, id), "name": i.Name, "email": i.Email, "replyTo": nil, "bcc": nil, "textSignature": i.Text, "htmlSignature": i.HTML, "mayDelete": !i.Default && !i.Alias}
	if i.ReplyTo != nil {
		object["replyTo"] = i.ReplyTo
	}
	if i.BCC != nil {
		object["bcc"] = i.BCC
	}
	return object
}

// check checks an identity of an account with some addresses.
func (i *identity) check(own []string) *core.SetError {
	control := func(r rune) bool { return unicode.IsControl(r) || r == '\u2028' || r == '\u2029' }
	switch {
	case !submission.Has(own, i.Email):
		return &core.SetError{Type: core.SetForbiddenFrom, Description: fmt.Sprintf("the email of an identity must be %s, the address of the account, or one of its aliases", own[0])}
	case len(i.Name) > maxIdentityName || strings.ContainsFunc(i.Name, control):
		return core.Invalid(fmt.Sprintf("name must have at most %d bytes and no control characters", maxIdentityName), "name")
	case len(i.Text) > maxSignature:
		return core.Invalid(fmt.Sprintf("textSignature must have at most %d bytes", maxSignature), "textSignature")
	case len(i.HTML) > maxSignature:
		return core.Invalid(fmt.Sprintf("htmlSignature must have at most %d bytes", maxSignature), "htmlSignature")
	}
	for property, list := range map[string][]emailAddress{"replyTo": i.ReplyTo, "bcc": i.BCC} {
		if len(list) > maxIdentityCopies {
			return core.Invalid(fmt.Sprintf("%s must have at most %d addresses", property, maxIdentityCopies), property)
		}
		for _, a := range list {
			if _, err := address.Parse(a.Email); err != nil {
				return core.Invalid(property+": "+err.Error(), property)
			}
			if a.Name != nil && (len(*a.Name) > maxIdentityName || strings.ContainsFunc(*a.Name, control)) {
				return core.Invalid(property+": a name must not have control characters", property)
			}
		}
	}
	return nil
}

func (i *identity) body() string {
	text, _ := json.Marshal(i) // plain values: cannot fail
	return string(text)
}

// accountIdentities are the identities of an account.
type accountIdentities struct {
	of      mailbox.Account
	own     []string // addresses of the account: its own, followed by its aliases
	list    []identity
	records []mailbox.Record // of list
	state   mailbox.ModSeq
}

// identities returns the identities of an account. There is one for its address, which the first call for an account makes, and at least one for each
// alias. The identity that the server made for an alias is removed after the alias was removed.
func (m *Methods) identities(ctx context.Context, c *core.Call) (*accountIdentities, error) {
	all, err := m.readIdentities(ctx, c)
	if err != nil || !all.needUpdate() {
		return all, err
	}
	m.identityUpdate.Lock() // so that two calls do not make the same identity
	defer m.identityUpdate.Unlock()
	if all, err = m.readIdentities(ctx, c); err != nil {
		return nil, err
	}
	for i := range all.list {
		if all.isObsolete(i) {
			err := m.store.RemoveRecord(ctx, all.of.ID, mailbox.IdentityRecord, all.records[i].ID)
			if err != nil && !errors.Is(err, mailbox.ErrNoRecord) {
				return nil, accountError(err)
			}
		}
	}
	for i, address := range all.own {
		if all.has(i) {
			continue
		}
		made, most := identity{Email: address, Default: i == 0, Alias: i > 0}, 0
		if i == 0 {
			most = 1
		}
		_, err := m.store.AddRecord(ctx, all.of.ID, mailbox.IdentityRecord, false, made.body(), most)
		if err != nil && !errors.Is(err, mailbox.ErrTooMany) { // another call made it
			return nil, accountError(err)
		}
	}
	return m.readIdentities(ctx, c)
}

// readIdentities reads the stored identities of an account.
func (m *Methods) readIdentities(ctx context.Context, c *core.Call) (*accountIdentities, error) {
	id, records, state, err := m.records(ctx, c, mailbox.IdentityRecord)
	if err != nil {
		return nil, err
	}
	all := &accountIdentities{records: records, state: state}
	if all.of, err = m.store.Account(ctx, id); err != nil {
		return nil, accountError(err)
	}
	if all.own, err = m.store.Addresses(ctx, id); err != nil {
		return nil, accountError(err)
	}
	for i := range records {
		one, err := parseIdentity(&records[i], &all.of)
		if err != nil {
			return nil, err
		}
		all.list = append(all.list, one)
	}
	return all, nil
}

// has reports whether an address of the account has an identity. The first one that is stored is that of the own address.
func (a *accountIdentities) has(address int) bool {
	if address == 0 {
		return len(a.list) > 0
	}
	return slices.ContainsFunc(a.list, func(one identity) bool { return submission.Same(one.Email, a.own[address]) })
}

// isObsolete reports whether an identity was made for an alias that does not exist any more.
func (a *accountIdentities) isObsolete(i int) bool {
	return a.list[i].Alias && !submission.Has(a.own[1:], a.list[i].Email)
}

func (a *accountIdentities) needUpdate() bool {
	for i := range a.own {
		if !a.has(i) {
			return true
		}
	}
	for i := range a.list {
		if a.isObsolete(i) {
			return true
		}
	}
	return false
}

// identityGet is Identity/get (section 6.1).
func (m *Methods) identityGet(ctx context.Context, c *core.Call, a *core.GetArguments) (any, error) {
	if err := a.Check(c, identityProperties); err != nil {
		return nil, err
	}
	all, err := m.identities(ctx, c)
	if err != nil {
		return nil, err
	}
	list, records, state := all.list, all.records, all.state
	r := &core.GetResult{AccountID: a.AccountID, State: StateOf(state), List: []any{}, NotFound: []core.ID{}}
	if a.IDs == nil {
		for i := range list {
			r.List = append(r.List, a.Pick(list[i].object(records[i].ID)))
		}
		return r, nil
	}
	for _, id := range *a.IDs {
		at := slices.IndexFunc(records, func(r mailbox.Record) bool { return recordID(identityPrefix, r.ID) == id })
		if at < 0 {
			r.NotFound = append(r.NotFound, id)
			continue
		}
		r.List = append(r.List, a.Pick(list[at].object(records[at].ID)))
	}
	return r, nil
}

// identityChanges is Identity/changes (section 6.2).
func (m *Methods) identityChanges(ctx context.Context, c *core.Call, a *core.ChangesArguments) (any, error) {
	if _, err := m.identities(ctx, c); err != nil { // aliases may have changed
		return nil, err
	}
	return m.recordChanges(ctx, c, a, mailbox.IdentityRecord, identityPrefix, func(*mailbox.Record) bool { return true })
}

// identitySet is Identity/set (section 6.3). Each record is a transaction.
func (m *Methods) identitySet(ctx context.Context, c *core.Call, a *core.SetArguments) (any, error) {
	if err := a.Check(c); err != nil {
		return nil, err
	}
	all, err := m.identities(ctx, c)
	if err != nil {
		return nil, err
	}
	of, state := &all.of, all.state
	if err := checkModSeq(a.IfInState, state); err != nil {
		return nil, err
	}
	r := &core.SetResult{AccountID: a.AccountID, OldState: StateOf(state)}
	for _, member := range a.Create {
		object, failed, err := m.createIdentity(ctx, all, member.Value)
		if err != nil {
			return nil, err
		}
		if failed != nil {
			r.DidNotCreate(member.Name, failed)
			continue
		}
		c.Created(member.Name, object["id"].(core.ID))
		r.DidCreate(member.Name, object)
	}
	for _, member := range a.Update {
		name := core.ID(member.Name)
		if slices.Contains(a.Destroy, name) {
			r.DidNotUpdate(name, &core.SetError{Type: core.SetWillDestroy})
			continue
		}
		err := m.updateIdentity(ctx, c, all, name, member.Value)
		if failed := recordError(err); failed != nil {
			r.DidNotUpdate(name, failed)
		} else if err != nil {
			return nil, err
		} else {
			r.DidUpdate(name, nil)
		}
	}
	for _, name := range a.Destroy {
		err := m.destroyIdentity(ctx, c, of, name)
		if failed := recordError(err); failed != nil {
			r.DidNotDestroy(name, failed)
		} else if err != nil {
			return nil, err
		} else {
			resolved, _ := c.Resolve(name)
			r.Destroyed = append(r.Destroyed, resolved)
		}
	}
	r.NewState, err = m.stateNow(ctx, of.ID)
	return r, err
}

// identityRecord has the properties of an Identity that a client may set.
type identityRecord struct {
	Name    *string         `json:"name"`
	Email   *string         `json:"email"`
	ReplyTo *[]emailAddress `json:"replyTo"`
	BCC     *[]emailAddress `json:"bcc"`
	Text    *string         `json:"textSignature"`
	HTML    *string         `json:"htmlSignature"`
}

// apply sets the properties in the record; those that are null get their default.
func (i *identity) apply(properties core.Object, record *identityRecord) {
	value := func(s *string) string {
		if s == nil {
			return ""
		}
		return *s
	}
	list := func(l *[]emailAddress) []emailAddress {
		if l == nil {
			return nil
		}
		return *l
	}
	for _, m := range properties {
		switch m.Name {
		case "name":
			i.Name = value(record.Name)
		case "email":
			i.Email = value(record.Email)
		case "replyTo":
			i.ReplyTo = list(record.ReplyTo)
		case "bcc":
			i.BCC = list(record.BCC)
		case "textSignature":
			i.Text = value(record.Text)
		case "htmlSignature":
			i.HTML = value(record.HTML)
		}
	}
}

func (m *Methods) createIdentity(ctx context.Context, all *accountIdentities, text json.RawMessage) (map[string]any, *core.SetError, error) {
	properties, err := core.ParseObject(text)
	if err != nil {
		return nil, core.Invalid("the identity cannot be read"), nil
	}
	var record identityRecord
	if failed := core.DecodeProperties(properties, &record); failed != nil {
		return nil, failed, nil
	}
	if record.Email == nil {
		return nil, core.Invalid("an identity must have an email", "email"), nil
	}
	var made identity
	made.apply(properties, &record)
	if failed := made.check(all.own); failed != nil {
		return nil, failed, nil
	}
	stored, err := m.store.AddRecord(ctx, all.of.ID, mailbox.IdentityRecord, false, made.body(), maxIdentities)
	if failed := recordError(err); failed != nil {
		return nil, failed, nil
	}
	if err != nil {
		return nil, nil, err
	}
	object := made.object(stored.ID)
	for _, p := range properties { // the client knows them
		delete(object, p.Name)
	}
	return object, nil, nil
}

// identityNumber returns the number of an identity.
func identityNumber(c *core.Call, name core.ID) (mailbox.RecordID, error) {
	resolved, ok := c.Resolve(name)
	n, isID := number(resolved, identityPrefix)
	if !ok || !isID {
		return 0, &core.SetError{Type: core.SetNotFound}
	}
	return mailbox.RecordID(n), nil
}

func (m *Methods) updateIdentity(ctx context.Context, c *core.Call, all *accountIdentities, name core.ID, text json.RawMessage) error {
	n, err := identityNumber(c, name)
	if err != nil {
		return err
	}
	patch, err := core.ParseObject(text)
	if err != nil {
		return &core.SetError{Type: core.SetInvalidPatch, Description: "the patch cannot be read"}
	}
	_, err = m.store.EditRecord(ctx, all.of.ID, mailbox.IdentityRecord, n, func(r *mailbox.Record) error {
		now, err := parseIdentity(r, &all.of)
		if err != nil {
			return err
		}
		current, err := core.Properties(now.object(n))
		if err != nil {
			return err
		}
		after, touched, failed := core.ApplyPatch(current, patch)
		if failed != nil {
			return failed
		}
		var changed core.Object
		for _, property := range touched {
			value, err := json.Marshal(after[property])
			old, err2 := json.Marshal(current[property])
			if err := cmp.Or(err, err2); err != nil {
				return err
			}
			if string(old) != string(value) {
				changed = append(changed, core.Member{Name: property, Value: value})
			}
		}
		if _, has := changed.Get("email"); has {
			return core.Invalid("the email of an identity cannot be changed", "email")
		}
		var record identityRecord
		if failed := core.DecodeProperties(changed, &record); failed != nil {
			return failed
		}
		now.apply(changed, &record)
		if failed := now.check(all.own); failed != nil && len(changed) > 0 {
			return failed
		}
		r.Body = now.body()
		return nil
	})
	return err
}

func (m *Methods) destroyIdentity(ctx context.Context, c *core.Call, of *mailbox.Account, name core.ID) error {
	n, err := identityNumber(c, name)
	if err != nil {
		return err
	}
	_, err = m.store.EditRecord(ctx, of.ID, mailbox.IdentityRecord, n, func(r *mailbox.Record) error {
		now, err := parseIdentity(r, of)
		if err != nil {
			return err
		}
		if now.Default || now.Alias {
			return &core.SetError{Type: core.SetForbidden, Description: "the identities with the address of the account and with its aliases cannot be destroyed"}
		}
		r.Removed = true
		return nil
	})
	return err
}
