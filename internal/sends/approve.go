package sends

import (
	"context"
	"fmt"
	"slices"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/catalog"
	"fanfare.dev/fanfare/internal/httpapi/wire"
)

// Submit fixes the version of the template, and gives a draft for approval. It checks the rows again if the template, its data or the channel is not what they
// were checked with. Without a need for approval, the send is scheduled.
func (s *Sends) Submit(ctx context.Context, by catalog.Principal, service, id string) (wire.Send, error) {
	e, err := s.find(service, id)
	if err != nil {
		return wire.Send{}, err
	}
	e.mu.Lock()
	x := e.send
	e.mu.Unlock()
	if err := x.maySubmit(); err != nil {
		return wire.Send{}, err
	}
	checker, fixed, err := s.Messages.NewChecker(ctx, x.Service, x.request())
	if err != nil {
		return wire.Send{}, err
	}
	if x.List.CheckedAs != checkedAs(fixed) {
		if err := s.checkAgain(ctx, e); err != nil {
			return wire.Send{}, err
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	now := s.Clock.Now().UTC()
	err = s.change(ctx, e, func(x *send) error {
		if err := x.maySubmit(); err != nil {
			return err
		}
		x.Template = fixed.Template
		if x.List.CheckedAs != checkedAs(fixed) {
			return &fanfare.Error{Code: fanfare.Conflict, Message: "the send was changed in the meantime", Hint: "look at it, and submit it again"}
		}
		if x.List.Invalid > 0 && !x.SkipInvalid {
			return &fanfare.Error{Code: fanfare.Conflict, Message: fmt.Sprintf("%d of %d rows of the list are invalid", x.List.Invalid, x.List.Rows), Hint: "upload a corrected list, or set skip_invalid to send without them"}
		}
		if x.List.Valid == 0 {
			return &fanfare.Error{Code: fanfare.Conflict, Message: "no row of the list is valid", Hint: "upload a corrected list"}
		}
		var err error
		if x.Digest, err = x.digest(); err != nil {
			return err
		}
		x.State, x.SubmittedAt, x.SubmittedBy = wire.SendSubmitted, now, titleOf(by)
		if !s.NeedsApproval(x.Service) && checker.Hold(x.List.Valid) == "" {
			x.State, x.ApprovedAt = wire.SendScheduled, now
		}
		return nil
	})
	s.wakeUp()
	return s.show(ctx, by, e), err
}

// maySubmit returns an error if a send is not a draft with a list.
func (x *send) maySubmit() error {
	switch {
	case x.State != wire.SendDraft:
		return &fanfare.Error{Code: fanfare.Conflict, Message: "the send cannot be submitted: it is " + x.State, Hint: "only a draft can be submitted"}
	case x.List == nil:
		return &fanfare.Error{Code: fanfare.Conflict, Message: "the send has no recipients", Hint: "upload a list with fanfare sends upload or PUT /v1/sends/" + x.ID + "/recipients"}
	}
	return nil
}

// checkAgain checks the stored rows of a send, and stores the results. It returns an error if the list must not be sent.
func (s *Sends) checkAgain(ctx context.Context, e *entry) error {
	u, done, err := s.begin(ctx, e)
	if err != nil {
		return err
	}
	defer done()
	was := u.send.List
	u.list.Address, u.list.Columns = was.Address, was.Columns
	u.address, u.person = was.Address, was.Address
	u.nameColumns()
	for chunk := range was.Chunks {
		rows, err := s.rows(ctx, &u.send, chunk)
		if err != nil {
			return err
		}
		for i := range rows {
			r := &rows[i]
			if !r.Damaged {
				r.Errors, r.Suppressed, r.Place = nil, "", 0
			}
			if err := u.add(ctx, r); err != nil {
				return err
			}
		}
	}
	if err := u.finish(ctx); err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	x := e.send
	if err := x.maySubmit(); err != nil || x.List.Upload != was.Upload {
		return &fanfare.Error{Code: fanfare.Conflict, Message: "the send was changed in the meantime", Hint: "look at it, and submit it again"}
	}
	if u.list.Invalid > 0 && (!x.SkipInvalid || u.list.Valid == 0) {
		return s.refuse(ctx, e, u)
	}
	u.list.UploadedAt = was.UploadedAt
	replaced := x.uploads()
	x.List, x.Refused = &u.list, nil
	return s.replace(ctx, e, x, replaced)
}

// mayApprove returns why somebody cannot approve a send that waits for approval, or nil.
func (x *send) mayApprove(by catalog.Principal) *fanfare.Error {
	if !by.Scopes.Has(catalog.ScopeApprove) {
		return &fanfare.Error{Code: fanfare.Forbidden, Message: "the approval needs a key with the scope approve", Hint: "ask a colleague who has one"}
	}
	for i := range x.Authors {
		for _, identity := range by.Identities() {
			if slices.Contains(x.Authors[i].Identities, identity) {
				return &fanfare.Error{Code: fanfare.Forbidden, Message: "an author of a send cannot approve it: " + x.Authors[i].Title + " created it or changed it", Hint: "ask another person to approve it"}
			}
		}
	}
	return nil
}

// Approve approves what somebody saw, by its digest.
func (s *Sends) Approve(ctx context.Context, by catalog.Principal, service, id, digest string) (wire.Send, error) {
	e, err := s.find(service, id)
	if err != nil {
		return wire.Send{}, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	err = s.change(ctx, e, func(x *send) error {
		if x.State != wire.SendSubmitted {
			return &fanfare.Error{Code: fanfare.Conflict, Message: "the send does not wait for approval: it is " + x.State, Hint: "only a submitted send can be approved"}
		}
		if err := x.mayApprove(by); err != nil {
			return err
		}
		switch digest {
		case x.Digest:
		case "":
			return &fanfare.Error{Code: fanfare.Invalid, Pointer: "/digest", Message: "digest is missing", Hint: "set it to the digest of the send that you have seen"}
		default:
			return &fanfare.Error{Code: fanfare.Conflict, Pointer: "/digest", Message: "the send was changed since you saw it: its digest is another one", Hint: "look at the send again, and approve it with its new digest"}
		}
		x.State, x.ApprovedAt, x.ApprovedBy = wire.SendScheduled, s.Clock.Now().UTC(), titleOf(by)
		return nil
	})
	s.wakeUp()
	return s.show(ctx, by, e), err
}

// Pause pauses a send that is being sent: no further part begins, and its running broadcasts are paused.
func (s *Sends) Pause(ctx context.Context, by catalog.Principal, service, id, reason string) (wire.Send, error) {
	return s.steer(ctx, by, service, id, func(x *send) error {
		switch x.State {
		case wire.SendSending:
			x.State, x.Reason, x.Settled = wire.SendPaused, reason, false
			return nil
		case wire.SendPaused:
			return nil
		}
		return &fanfare.Error{Code: fanfare.Conflict, Message: "the send cannot be paused: it is " + x.State, Hint: "only a send that is being sent can be paused; a change makes a scheduled one a draft"}
	})
}

// Resume continues a paused send.
func (s *Sends) Resume(ctx context.Context, by catalog.Principal, service, id, reason string) (wire.Send, error) {
	return s.steer(ctx, by, service, id, func(x *send) error {
		switch x.State {
		case wire.SendPaused:
			if x.Uncertain {
				x.Uncertain, x.Begun = false, s.Clock.Now().UTC()
			}
			x.State, x.Reason, x.Settled = wire.SendSending, reason, false
			return nil
		case wire.SendSending:
			return nil
		}
		return &fanfare.Error{Code: fanfare.Conflict, Message: "the send is not paused: it is " + x.State}
	})
}

// Cancel cancels a send that has not ended: no further part begins, and its running broadcasts are cancelled.
func (s *Sends) Cancel(ctx context.Context, by catalog.Principal, service, id, reason string) (wire.Send, error) {
	return s.steer(ctx, by, service, id, func(x *send) error {
		switch x.State {
		case wire.SendCompleted, wire.SendCancelled:
			return &fanfare.Error{Code: fanfare.Conflict, Message: "the send has already ended: it is " + x.State}
		}
		x.Settled = x.StartedAt.IsZero() // nothing was sent
		x.State, x.Reason, x.EndedAt = wire.SendCancelled, reason, s.Clock.Now().UTC()
		return nil
	})
}

// steer changes the state of a send, and returns when its broadcasts have taken over the state, or when ctx ends.
func (s *Sends) steer(ctx context.Context, by catalog.Principal, service, id string, edit func(x *send) error) (wire.Send, error) {
	e, err := s.find(service, id)
	if err != nil {
		return wire.Send{}, err
	}
	e.mu.Lock()
	if err := s.change(ctx, e, edit); err != nil {
		e.mu.Unlock()
		return wire.Send{}, err
	}
	e.mu.Unlock()
	s.wakeUp()
	s.awaitSettled(ctx, e)
	return s.Get(ctx, by, service, id)
}
