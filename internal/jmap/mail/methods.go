package mail

import (
	"container/list"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/clock"
	"fanfare.dev/fanfare/internal/jmap/core"
	"fanfare.dev/fanfare/internal/mailbox"
)

// The capabilities.
const (
	Capability      = "urn:ietf:params:jmap:mail"
	QuotaCapability = "urn:ietf:params:jmap:quota"

	SubmissionCapability = "urn:ietf:params:jmap:submission"
)

// Options are what Methods need.
type Options struct {
	Store  *mailbox.Store
	Sender Sender // nil: identities and submissions are not supported
	Clock  clock.Clock
	Logger *slog.Logger
}

// Methods are the methods of JMAP Mail. They are safe for concurrent use.
type Methods struct {
	store    *mailbox.Store
	sender   Sender
	clock    clock.Clock
	log      *slog.Logger
	views    views
	messages *contentCache[*digest]
	texts    *contentCache[searchedText]

	identityUpdate sync.Mutex // held while identities are made for aliases
}

// New returns the methods on a store.
func New(o Options) *Methods {
	return &Methods{store: o.Store, sender: o.Sender, clock: o.Clock, log: o.Logger,
		views:    views{store: o.Store, entries: map[mailbox.AccountID]*list.Element{}},
		messages: newContentCache[*digest](maxDigests, maxCachedDigest), texts: newContentCache[searchedText](maxTexts, maxCachedText)}
}

// Table returns the methods by their names.
func (m *Methods) Table() map[string]core.Method {
	table := map[string]core.Method{
		"Core/echo": core.Echo(),
		"Blob/copy": core.On(core.Capability, m.blobCopy),

		"Mailbox/get":          core.On(Capability, m.mailboxGet),
		"Mailbox/changes":      core.On(Capability, m.mailboxChanges),
		"Mailbox/query":        core.On(Capability, m.mailboxQuery),
		"Mailbox/queryChanges": core.On(Capability, m.mailboxQueryChanges),
		"Mailbox/set":          core.On(Capability, m.mailboxSet),

		"Thread/get":     core.On(Capability, m.threadGet),
		"Thread/changes": core.On(Capability, m.threadChanges),

		"Email/get":          core.On(Capability, m.emailGet),
		"Email/changes":      core.On(Capability, m.emailChanges),
		"Email/query":        core.On(Capability, m.emailQuery),
		"Email/queryChanges": core.On(Capability, m.emailQueryChanges),
		"Email/set":          core.On(Capability, m.emailSet),
		"Email/copy":         core.On(Capability, m.emailCopy),
		"Email/import":       core.On(Capability, m.emailImport),
		"Email/parse":        core.On(Capability, m.emailParse),

		"SearchSnippet/get": core.On(Capability, m.snippetGet),

		"Quota/get":          core.On(QuotaCapability, m.quotaGet),
		"Quota/changes":      core.On(QuotaCapability, m.quotaChanges),
		"Quota/query":        core.On(QuotaCapability, m.quotaQuery),
		"Quota/queryChanges": core.On(QuotaCapability, m.quotaQueryChanges),
	}
	if m.sender != nil {
		table["Identity/get"] = core.On(SubmissionCapability, m.identityGet)
		table["Identity/changes"] = core.On(SubmissionCapability, m.identityChanges)
		table["Identity/set"] = core.On(SubmissionCapability, m.identitySet)
		table["EmailSubmission/get"] = core.On(SubmissionCapability, m.submissionGet)
		table["EmailSubmission/changes"] = core.On(SubmissionCapability, m.submissionChanges)
		table["EmailSubmission/query"] = core.On(SubmissionCapability, m.submissionQuery)
		table["EmailSubmission/queryChanges"] = core.On(SubmissionCapability, m.submissionQueryChanges)
		table["EmailSubmission/set"] = core.On(SubmissionCapability, m.submissionSet)
	}
	return table
}

// AccountCapability is the value of the capability for an account (RFC 8621, section 1.3.1).
func AccountCapability(maxMailboxName int) map[string]any {
	return map[string]any{
		"maxMailboxesPerEmail": 1, "maxMailboxDepth": nil, "maxSizeMailboxName": maxMailboxName, "maxSizeAttachmentsPerEmail": maxAttachments,
		"emailQuerySortOptions": emailSortProperties, "mayCreateTopLevelMailbox": true,
	}
}

// account returns the account of a call.
func account(c *core.Call) (mailbox.AccountID, error) {
	id, ok := ParseAccountID(c.Account)
	if !ok {
		return 0, core.Fail(core.AccountNotFound, "")
	}
	return id, nil
}

// current returns the view of the account of a call.
func (m *Methods) current(ctx context.Context, c *core.Call) (mailbox.AccountID, *view, error) {
	id, err := account(c)
	if err != nil {
		return 0, nil, err
	}
	v, err := m.views.current(ctx, id)
	return id, v, accountError(err)
}

// accountError returns the error of a method for an error of the store.
func accountError(err error) error {
	if errors.Is(err, mailbox.ErrNoAccount) {
		return core.Fail(core.AccountNotFound, "")
	}
	return err
}

// since returns the changes of an account after a state, and the view with the same state.
func (m *Methods) since(ctx context.Context, c *core.Call, state *string) (position, *mailbox.Changes, *view, error) {
	id, err := account(c)
	if err != nil {
		return position{}, nil, nil, err
	}
	if state == nil {
		return position{}, nil, nil, core.Fail(core.InvalidArguments, "the argument sinceState is missing")
	}
	p, err := parseState(*state)
	if err != nil {
		return p, nil, nil, err
	}
	for range 20 { // until no change comes between the two reads
		v, err := m.views.current(ctx, id)
		if err != nil {
			return p, nil, nil, accountError(err)
		}
		changes, err := m.store.Changes(ctx, id, 0, p.since())
		if isOld(err) {
			return p, nil, nil, errCannotCalculate
		}
		if err != nil {
			return p, nil, nil, err
		}
		if changes.State == v.state {
			return p, &changes, v, nil
		}
	}
	return p, nil, nil, &fanfare.Error{Code: fanfare.Unavailable, Message: "the account changes too fast to list its changes", Hint: "try again in a moment"}
}

// checkState refuses a /set for another state.
func checkState(wanted *string, v *view) error {
	if wanted != nil && *wanted != StateOf(v.state) {
		return core.Fail(core.StateMismatch, "")
	}
	return nil
}

// setError returns the SetError for an error of the store, or nil if the call has to fail as a whole.
func setError(err error) *core.SetError {
	known, ok := errors.AsType[*fanfare.Error](err)
	if !ok {
		return nil
	}
	for _, k := range []struct {
		err        error
		kind       string
		properties []string
	}{
		{mailbox.ErrNoMailbox, core.SetInvalidProperties, nil}, {mailbox.ErrExists, core.SetInvalidProperties, []string{"name"}}, {mailbox.ErrBadName, core.SetInvalidProperties, []string{"name"}},
		{mailbox.ErrHasChild, core.SetMailboxHasChild, nil}, {mailbox.ErrNotEmpty, core.SetMailboxHasEmail, nil}, {mailbox.ErrOverQuota, core.SetOverQuota, nil},
		{mailbox.ErrTooLarge, core.SetTooLarge, nil}, {mailbox.ErrTooMany, core.SetOverQuota, nil}, {mailbox.ErrNoMessage, core.SetNotFound, nil},
		{mailbox.ErrFixed, core.SetForbidden, nil}, {mailbox.ErrBadKeyword, core.SetInvalidProperties, []string{"keywords"}},
	} {
		if errors.Is(err, k.err) {
			return &core.SetError{Type: k.kind, Description: known.Error(), Properties: k.properties}
		}
	}
	if known.Code == fanfare.Invalid {
		return core.Invalid(known.Error())
	}
	return nil
}

// copyArguments are those of Blob/copy.
type copyArguments struct {
	core.InAccount
	From    core.ID   `json:"fromAccountId"`
	BlobIDs []core.ID `json:"blobIds"`
}

// blobCopy is Blob/copy (RFC 8620, section 6.3). A login has one account, so that there is none to copy from.
func (m *Methods) blobCopy(_ context.Context, c *core.Call, a *copyArguments) (any, error) {
	if len(a.BlobIDs) > c.Limits.MaxObjectsInSet {
		return nil, core.Fail(core.RequestTooLarge, fmt.Sprintf("%d blobs are more than maxObjectsInSet, which is %d", len(a.BlobIDs), c.Limits.MaxObjectsInSet))
	}
	return nil, copyError(c, a.From)
}

// copyError refuses the account of a copy.
func copyError(c *core.Call, from core.ID) error {
	if from == c.Account {
		return core.Fail(core.InvalidArguments, "fromAccountId must not be accountId")
	}
	return core.Fail(core.FromAccountNotFound, "")
}
