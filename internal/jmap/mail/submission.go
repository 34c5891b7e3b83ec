package mail

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"fanfare.dev/fanfare/internal/jmap/core"
	"fanfare.dev/fanfare/internal/mail/submission"
	"fanfare.dev/fanfare/internal/mailbox"
)

// A Sender sends messages; *submission.Submitter has these methods.
type Sender interface {
	// Send sends a message that submission.Complete has checked. Its errors for mistakes of the sender are those of submission.Submitter.
	Send(ctx context.Context, a *mailbox.Account, from string, message []byte, to []string, client json.RawMessage) (mailbox.RecordID, *submission.Record, error)
	// Name returns the host in a new Message-ID.
	Name() string
}

// Bounds of submissions.
const (
	maxRecipients = 200
	maxSubmission = 50 << 20 // bytes
)

// SubmissionAccountCapability is the value of the capability for an account (RFC 8621, section 1.3.2).
func SubmissionAccountCapability() map[string]any {
	return map[string]any{"maxDelayedSend": 0, "submissionExtensions": map[string]any{}}
}

// submissionProperties are those of an EmailSubmission (RFC 8621, section 7).
var submissionProperties = []string{"id", "identityId", "emailId", "threadId", "envelope", "sendAt", "undoStatus", "deliveryStatus", "dsnBlobIds", "mdnBlobIds"}

// An envelope is an Envelope, and an envelopeAddress an Address in it.
type envelope struct {
	From       *envelopeAddress  `json:"mailFrom"`
	Recipients []envelopeAddress `json:"rcptTo"`
}

type envelopeAddress struct {
	Email      string             `json:"email"`
	Parameters map[string]*string `json:"parameters"`
}

// clientRecord is what a record keeps for JMAP.
type clientRecord struct {
	Identity mailbox.RecordID `json:"identity"`
	Email    mailbox.EmailID  `json:"email"`
	Thread   mailbox.ThreadID `json:"thread"`
	Envelope envelope         `json:"envelope"`
}

// A submitted is a submission that JMAP shows.
type submitted struct {
	id     mailbox.RecordID
	record *submission.Record
	client clientRecord
}

// showsSubmission reports whether a client made a record, and has not destroyed it.
func showsSubmission(r *mailbox.Record) bool {
	record, err := submission.ParseRecord(r)
	return err == nil && record.Client != nil
}

// submissions returns the submissions of the account, up to n of them if n is not 0, and its state.
func (m *Methods) submissions(ctx context.Context, c *core.Call, n int) (list []submitted, state mailbox.ModSeq, err error) {
	id, err := account(c)
	if err != nil {
		return nil, 0, err
	}
	records, state, err := m.store.SomeRecords(ctx, id, mailbox.SubmissionRecord, n, showsSubmission)
	if err != nil {
		return nil, 0, accountError(err)
	}
	list, err = parseSubmissions(records)
	return list, state, err
}

// submissionsByID returns those of the named submissions that exist, and the state of the account.
func (m *Methods) submissionsByID(ctx context.Context, id mailbox.AccountID, names []core.ID) (map[core.ID]*submitted, mailbox.ModSeq, error) {
	var numbers []mailbox.RecordID
	for _, name := range names {
		if n, ok := number(name, submissionPrefix); ok {
			numbers = append(numbers, mailbox.RecordID(n))
		}
	}
	slices.Sort(numbers)
	records, state, err := m.store.RecordsByID(ctx, id, mailbox.SubmissionRecord, slices.Compact(numbers))
	if err != nil {
		return nil, 0, accountError(err)
	}
	list, err := parseSubmissions(records)
	found := make(map[core.ID]*submitted, len(list))
	for i := range list {
		found[list[i].name()] = &list[i]
	}
	return found, state, err
}

// parseSubmissions reads records, without those that JMAP does not show.
func parseSubmissions(records []mailbox.Record) ([]submitted, error) {
	list := make([]submitted, 0, len(records))
	for i := range records {
		record, err := submission.ParseRecord(&records[i])
		if err != nil {
			return nil, err
		}
		if record.Client == nil {
			continue
		}
		one := submitted{id: records[i].ID, record: record}
		if err := json.Unmarshal(record.Client, &one.client); err != nil {
			return nil, fmt.Errorf("submission %d of account %d: %w", records[i].ID, records[i].Account, err)
		}
		list = append(list, one)
	}
	return list, nil
}

func (s *submitted) name() core.ID { return recordID(submissionPrefix, s.id) }

// object returns an EmailSubmission. The server cannot take messages back, so that undoStatus is always final.
func (s *submitted) object() map[string]any {
	status := map[string]any{}
	for _, to := range s.record.Recipients {
		reply := to.Reply
		if reply == "" {
			reply = "250 2.0.0 queued" // section 7 wants the form of a reply also before there is one
		}
		status[to.Address] = map[string]any{"smtpReply": reply, "delivered": to.Delivered, "displayed": "unknown"}
	}
	return map[string]any{
		"id": s.name(), "identityId": recordID(identityPrefix, s.client.Identity), "emailId": emailID(s.client.Email), "threadId": threadID(s.client.Thread),
		"envelope": s.client.Envelope, "sendAt": core.UTC(time.Unix(s.record.SentAt, 0)), "undoStatus": "final", "deliveryStatus": status, "dsnBlobIds": []core.ID{}, "mdnBlobIds": []core.ID{},
	}
}

// submissionGet is EmailSubmission/get (section 7.1).
func (m *Methods) submissionGet(ctx context.Context, c *core.Call, a *core.GetArguments) (any, error) {
	if err := a.Check(c, submissionProperties); err != nil {
		return nil, err
	}
	r := &core.GetResult{AccountID: a.AccountID, List: []any{}, NotFound: []core.ID{}}
	if a.IDs == nil {
		list, state, err := m.submissions(ctx, c, c.Limits.MaxObjectsInGet+1)
		if err != nil {
			return nil, err
		}
		if len(list) > c.Limits.MaxObjectsInGet {
			return nil, core.Fail(core.RequestTooLarge, fmt.Sprintf("the account has more than %d submissions; ask for them by their ids", c.Limits.MaxObjectsInGet))
		}
		for i := range list {
			r.List = append(r.List, a.Pick(list[i].object()))
		}
		r.State = StateOf(state)
		return r, nil
	}
	id, err := account(c)
	if err != nil {
		return nil, err
	}
	found, state, err := m.submissionsByID(ctx, id, *a.IDs)
	if err != nil {
		return nil, err
	}
	for _, name := range *a.IDs {
		if one := found[name]; one != nil {
			r.List = append(r.List, a.Pick(one.object()))
		} else {
			r.NotFound = append(r.NotFound, name)
		}
	}
	r.State = StateOf(state)
	return r, nil
}

// submissionChanges is EmailSubmission/changes (section 7.2).
func (m *Methods) submissionChanges(ctx context.Context, c *core.Call, a *core.ChangesArguments) (any, error) {
	return m.recordChanges(ctx, c, a, mailbox.SubmissionRecord, submissionPrefix, showsSubmission)
}

// submissionQuery is EmailSubmission/query (section 7.3).
func (m *Methods) submissionQuery(ctx context.Context, c *core.Call, a *core.QueryArguments) (any, error) {
	list, state, err := m.submissions(ctx, c, 0)
	if err != nil {
		return nil, err
	}
	ids, err := querySubmissions(list, a.Filter, a.Sort)
	if err != nil {
		return nil, err
	}
	r, err := a.Window(ids, maxQuery)
	if err != nil {
		return nil, err
	}
	r.QueryState, r.CanChanges = StateOf(state), true
	return r, nil
}

// submissionQueryChanges is EmailSubmission/queryChanges (section 7.4). All that is filtered and sorted by stays as it is, so that only new and
// destroyed submissions change the results.
func (m *Methods) submissionQueryChanges(ctx context.Context, c *core.Call, a *core.QueryChangesArguments) (any, error) {
	if err := a.Check(); err != nil {
		return nil, err
	}
	since, err := parseState(*a.SinceQueryState)
	if err != nil {
		return nil, err
	}
	list, _, err := m.submissions(ctx, c, 0)
	if err != nil {
		return nil, err
	}
	h, state, err := m.recordHistory(ctx, c, since, mailbox.SubmissionRecord, showsSubmission)
	if err != nil {
		return nil, err
	}
	ids, err := querySubmissions(list, a.Filter, a.Sort)
	if err != nil {
		return nil, err
	}
	r := &core.QueryChangesResult{AccountID: a.AccountID, OldState: since.String(), NewState: StateOf(state), Removed: []core.ID{}, Added: []core.Added{}}
	for _, e := range h.list() {
		r.Removed = append(r.Removed, recordID(submissionPrefix, mailbox.RecordID(e.at.record)))
	}
	slices.Sort(r.Removed)
	for i, id := range ids {
		if slices.Contains(r.Removed, id) {
			r.Added = append(r.Added, core.Added{ID: id, Index: i})
		}
	}
	return finishQueryChanges(a, r, len(ids))
}

// querySubmissions returns the submissions that match, in their order.
func querySubmissions(list []submitted, filter *core.Filter, sort []core.Comparator) ([]core.ID, error) {
	tests := map[*core.Filter]func(s *submitted) bool{}
	err := filter.Each(func(f *core.Filter) error {
		var identities, emails, threads *[]core.ID
		var undo *string
		var before, after *core.UTCDate
		if err := condition(f.Condition, map[string]any{"identityIds": &identities, "emailIds": &emails, "threadIds": &threads, "undoStatus": &undo, "before": &before, "after": &after}); err != nil {
			return err
		}
		has := func(wanted *[]core.ID, id core.ID) bool { return wanted == nil || slices.Contains(*wanted, id) }
		tests[f] = func(s *submitted) bool {
			at := time.Unix(s.record.SentAt, 0)
			return has(identities, recordID(identityPrefix, s.client.Identity)) && has(emails, emailID(s.client.Email)) && has(threads, threadID(s.client.Thread)) &&
				(undo == nil || *undo == "final") && (before == nil || at.Before(before.Time)) && (after == nil || !at.Before(after.Time))
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	var keys []func(a, b *submitted) int
	for i := range sort {
		var key func(a, b *submitted) int
		switch sort[i].Property {
		case "emailId":
			key = func(a, b *submitted) int { return cmp.Compare(a.client.Email, b.client.Email) }
		case "threadId":
			key = func(a, b *submitted) int { return cmp.Compare(a.client.Thread, b.client.Thread) }
		case "sentAt", "sendAt": // RFC 8621 has the first name, and the property the second one
			key = func(a, b *submitted) int { return cmp.Compare(a.record.SentAt, b.record.SentAt) }
		default:
			return nil, core.Fail(core.UnsupportedSort, fmt.Sprintf("submissions cannot be sorted by %.80q; use emailId, threadId or sentAt", sort[i].Property))
		}
		keys = append(keys, directed(key, sort[i].Descends()))
	}
	sorted := slices.Clone(list)
	slices.SortStableFunc(sorted, func(a, b submitted) int { return compareBy(keys, &a, &b) })
	ids := []core.ID{}
	for i := range sorted {
		if filter.Matches(func(f *core.Filter) bool { return tests[f](&sorted[i]) }) {
			ids = append(ids, sorted[i].name())
		}
	}
	return ids, nil
}

// hasPlainLines reports whether all lines, except for the last one, end with CR LF, as SMTP wants, and there is no NUL.
func hasPlainLines(text []byte) bool {
	for i, c := range text {
		switch {
		case c == 0, c == '\n' && (i == 0 || text[i-1] != '\r'), c == '\r' && (i+1 == len(text) || text[i+1] != '\n'):
			return false
		}
	}
	return true
}
