package mail

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/jmap/core"
	"fanfare.dev/fanfare/internal/mail/mimetree"
	"fanfare.dev/fanfare/internal/mail/submission"
	"fanfare.dev/fanfare/internal/mailbox"
)

// submissionSetArguments are those of EmailSubmission/set (RFC 8621, section 7.5).
type submissionSetArguments struct {
	core.SetArguments
	UpdateEmail  core.Object `json:"onSuccessUpdateEmail"`
	DestroyEmail []core.ID   `json:"onSuccessDestroyEmail"`
}

// submissionSet is EmailSubmission/set. Each submission is sent alone, and is durable before the next one.
func (m *Methods) submissionSet(ctx context.Context, c *core.Call, a *submissionSetArguments) (any, error) {
	if err := a.Check(c); err != nil {
		return nil, err
	}
	id, err := account(c)
	if err != nil {
		return nil, err
	}
	var names []core.ID
	for _, member := range a.Update {
		resolved, _ := c.Resolve(core.ID(member.Name))
		names = append(names, resolved)
	}
	for _, name := range a.Destroy {
		resolved, _ := c.Resolve(name)
		names = append(names, resolved)
	}
	found, state, err := m.submissionsByID(ctx, id, names)
	if err != nil {
		return nil, err
	}
	if err := checkModSeq(a.IfInState, state); err != nil {
		return nil, err
	}
	r := &core.SetResult{AccountID: a.AccountID, OldState: StateOf(state)}
	done := map[core.ID]mailbox.EmailID{} // the messages of submissions that were changed
	for _, member := range a.Create {
		made, failed, err := m.submit(ctx, c, id, member.Value)
		if err != nil {
			return nil, err
		}
		if failed != nil {
			r.DidNotCreate(member.Name, failed)
			continue
		}
		object := made.object()
		for _, known := range []string{"identityId", "emailId"} {
			delete(object, known)
		}
		c.Created(member.Name, made.name())
		r.DidCreate(member.Name, object)
		done[made.name()] = made.client.Email
	}
	of := func(name core.ID) *submitted {
		resolved, ok := c.Resolve(name)
		if !ok {
			return nil
		}
		return found[resolved]
	}
	for _, member := range a.Update {
		name := core.ID(member.Name)
		one := of(name)
		if failed := updateSubmission(one, member.Value, slices.Contains(a.Destroy, name)); failed != nil {
			r.DidNotUpdate(name, failed)
			continue
		}
		r.DidUpdate(name, nil)
		done[one.name()] = one.client.Email
	}
	for _, name := range a.Destroy {
		one := of(name)
		if one == nil {
			r.DidNotDestroy(name, &core.SetError{Type: core.SetNotFound})
			continue
		}
		_, err := m.store.EditRecord(ctx, id, mailbox.SubmissionRecord, one.id, submission.Hide)
		if failed := recordError(err); failed != nil {
			r.DidNotDestroy(name, failed)
			continue
		}
		if err != nil {
			return nil, err
		}
		r.Destroyed = append(r.Destroyed, one.name())
		done[one.name()] = one.client.Email
	}
	if r.NewState, err = m.stateNow(ctx, id); err != nil {
		return nil, err
	}
	return a.then(ctx, c, r, done)
}

// then calls Email/set for the messages of submissions that succeeded, if there are any.
func (a *submissionSetArguments) then(ctx context.Context, c *core.Call, r *core.SetResult, done map[core.ID]mailbox.EmailID) (any, error) {
	updates := map[core.ID]json.RawMessage{}
	for _, member := range a.UpdateEmail {
		resolved, _ := c.Resolve(core.ID(member.Name))
		if email, ok := done[resolved]; ok {
			updates[emailID(email)] = member.Value
		}
	}
	var destroys []core.ID
	for _, name := range a.DestroyEmail {
		resolved, _ := c.Resolve(name)
		if email, ok := done[resolved]; ok && !slices.Contains(destroys, emailID(email)) {
			destroys = append(destroys, emailID(email))
		}
	}
	if len(updates)+len(destroys) == 0 {
		return r, nil
	}
	arguments := map[string]any{"accountId": a.AccountID}
	if len(updates) > 0 {
		arguments["update"] = updates
	}
	if len(destroys) > 0 {
		arguments["destroy"] = destroys
	}
	return c.Then(ctx, r, "Email/set", arguments)
}

// updateSubmission refuses changes: a message that was sent cannot be taken back. one is nil if there is no such submission.
func updateSubmission(one *submitted, text json.RawMessage, destroys bool) *core.SetError {
	if one == nil {
		return &core.SetError{Type: core.SetNotFound}
	}
	if destroys {
		return &core.SetError{Type: core.SetWillDestroy}
	}
	patch, err := core.ParseObject(text)
	if err != nil {
		return &core.SetError{Type: core.SetInvalidPatch, Description: "the patch cannot be read"}
	}
	for _, m := range patch {
		switch {
		case m.Name != "undoStatus":
			return core.Invalid(fmt.Sprintf("%.80s cannot be changed", m.Name), m.Name)
		case string(m.Value) == `"canceled"`:
			return &core.SetError{Type: core.SetCannotUnsend, Description: "the message has been sent"}
		case string(m.Value) != `"final"`:
			return core.Invalid("undoStatus can only become canceled", "undoStatus")
		}
	}
	return nil
}

// submit sends a message.
func (m *Methods) submit(ctx context.Context, c *core.Call, id mailbox.AccountID, text json.RawMessage) (*submitted, *core.SetError, error) {
	properties, err := core.ParseObject(text)
	if err != nil {
		return nil, core.Invalid("the submission cannot be read"), nil
	}
	var record struct {
		Identity core.ID   `json:"identityId"`
		Email    core.ID   `json:"emailId"`
		Envelope *envelope `json:"envelope"`
	}
	if failed := core.DecodeProperties(properties, &record); failed != nil {
		return nil, failed, nil
	}
	account, err := m.store.Account(ctx, id)
	if err != nil {
		return nil, nil, accountError(err)
	}
	own, err := m.store.Addresses(ctx, id)
	if err != nil {
		return nil, nil, accountError(err)
	}
	of, number, failed, err := m.identityOf(ctx, c, &account, own, record.Identity)
	if failed != nil || err != nil {
		return nil, failed, err
	}
	resolved, ok := c.Resolve(record.Email)
	email, isID := parseEmailID(resolved)
	v, err := m.views.current(ctx, id)
	if err != nil {
		return nil, nil, err
	}
	message := v.message(email)
	if !ok || !isID || message == nil {
		return nil, core.Invalid(fmt.Sprintf("the email %.80q does not exist", record.Email), "emailId"), nil
	}
	if message.Size > maxSubmission {
		return nil, &core.SetError{Type: core.SetTooLarge, Description: fmt.Sprintf("a message that is sent can have at most %d bytes", maxSubmission), Extra: map[string]any{"maxSize": maxSubmission}}, nil
	}
	content, err := m.store.Content(ctx, id, email)
	if err != nil {
		if errors.Is(err, mailbox.ErrNoMessage) {
			return nil, core.Invalid("the email was destroyed", "emailId"), nil
		}
		return nil, nil, err
	}
	if !hasPlainLines(content) {
		return nil, &core.SetError{Type: core.SetInvalidEmail, Description: "all lines of a message that is sent must end with CR LF, and it must not contain NUL"}, nil
	}
	if !bytes.HasSuffix(content, []byte("\r\n")) {
		content = append(content, "\r\n"...)
	}
	client := clientRecord{Identity: number, Email: email, Thread: message.Thread}
	if client.Envelope, failed = envelopeOf(record.Envelope, content, own, &of); failed != nil {
		return nil, failed, nil
	}
	complete, err := submission.Complete(content, own, m.sender.Name(), m.clock.Now())
	if err != nil {
		return nil, submissionError(err, &account), nil
	}
	to := make([]string, len(client.Envelope.Recipients))
	for i := range to {
		to[i] = client.Envelope.Recipients[i].Email
	}
	body, err := json.Marshal(client)
	if err != nil {
		return nil, nil, err
	}
	made := &submitted{client: client}
	made.id, made.record, err = m.sender.Send(ctx, &account, client.Envelope.From.Email, complete, to, body)
	if failed := submissionError(err, &account); failed != nil {
		return nil, failed, nil
	}
	return made, nil, err
}

// identityOf returns an identity that may send.
func (m *Methods) identityOf(ctx context.Context, c *core.Call, account *mailbox.Account, own []string, name core.ID) (i identity, n mailbox.RecordID, failed *core.SetError, err error) {
	unknown := core.Invalid(fmt.Sprintf("the identity %.80q does not exist", name), "identityId")
	if n, err = identityNumber(c, name); err != nil {
		return i, 0, unknown, nil
	}
	stored, err := m.store.Record(ctx, account.ID, mailbox.IdentityRecord, n)
	if errors.Is(err, mailbox.ErrNoRecord) {
		return i, 0, unknown, nil
	}
	if err != nil {
		return i, 0, nil, err
	}
	if i, err = parseIdentity(&stored, account); err != nil {
		return i, 0, nil, err
	}
	if !submission.Has(own, i.Email) { // the account got another address, or an alias was removed
		return i, 0, &core.SetError{Type: core.SetForbiddenFrom, Description: fmt.Sprintf("the identity has the address %s, which is not one of the account any more; use %s", i.Email, own[0])}, nil
	}
	return i, n, nil, nil
}

// envelopeOf checks an envelope, or makes one from the header of the message.
func envelopeOf(given *envelope, content []byte, own []string, of *identity) (e envelope, failed *core.SetError) {
	tree := mimetree.Parse(content)
	if given == nil {
		e.From = &envelopeAddress{Email: of.Email} // a message has no other sender: submission.Complete checks it
		seen := map[string]bool{}
		for _, a := range slices.Concat(tree.Envelope.To, tree.Envelope.Cc, tree.Envelope.Bcc) {
			if one := a.Mailbox + "@" + a.Host; a.Group == mimetree.NoGroup && !seen[one] {
				seen[one] = true
				e.Recipients = append(e.Recipients, envelopeAddress{Email: one})
			}
		}
	} else {
		e = *given
	}
	switch {
	case e.From == nil:
		return e, core.Invalid("the envelope must have mailFrom", "envelope")
	case !submission.Has(own, e.From.Email):
		return e, &core.SetError{Type: core.SetForbiddenMailFrom, Description: fmt.Sprintf("mailFrom must be %s, the address of the account, or one of its aliases", own[0])}
	case len(e.Recipients) == 0:
		return e, &core.SetError{Type: core.SetNoRecipients, Description: "the message has no recipients"}
	case len(e.Recipients) > maxRecipients:
		return e, &core.SetError{Type: core.SetTooManyRecipients, Description: fmt.Sprintf("a message can have at most %d recipients", maxRecipients), Extra: map[string]any{"maxRecipients": maxRecipients}}
	}
	for _, a := range append([]envelopeAddress{*e.From}, e.Recipients...) {
		for name := range a.Parameters {
			return e, core.Invalid(fmt.Sprintf("the parameter %.80q is not supported: the session lists submissionExtensions", name), "envelope")
		}
	}
	return e, nil
}

// submissionError returns the SetError for a mistake of the sender, or nil.
func submissionError(err error, account *mailbox.Account) *core.SetError {
	if err == nil {
		return nil
	}
	if refused, ok := errors.AsType[*submission.Refusal](err); ok {
		kind := core.SetInvalidEmail
		switch refused.Reason {
		case submission.BadMessage:
		case submission.ForeignSender:
			kind = core.SetForbiddenFrom
		case submission.TooMuch:
			kind = core.SetRateLimit
		}
		return &core.SetError{Type: kind, Description: refused.Text}
	}
	if wrong, ok := errors.AsType[*submission.ErrRecipients](err); ok {
		return &core.SetError{Type: core.SetInvalidRecipients, Description: wrong.Text, Extra: map[string]any{"invalidRecipients": wrong.Addresses}}
	}
	if fanfare.CodeOf(err) == fanfare.Forbidden {
		return &core.SetError{Type: core.SetForbidden, Description: strings.TrimSpace(account.Address + ": " + err.Error())}
	}
	return recordError(err)
}
