package mail

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"fanfare.dev/fanfare/internal/jmap/core"
	"fanfare.dev/fanfare/internal/jmap/header"
	"fanfare.dev/fanfare/internal/mailbox"
	"fanfare.dev/fanfare/internal/mailbox/searchfilter"
)

// maxQuery is the largest number of ids in the result of a query.
const maxQuery = 10_000

// emailQueryArguments are those of Email/query (RFC 8621, section 4.4).
type emailQueryArguments struct {
	core.QueryArguments
	CollapseThreads bool `json:"collapseThreads"`
}

type emailQueryChangesArguments struct {
	core.QueryChangesArguments
	CollapseThreads bool `json:"collapseThreads"`
}

// emailQueryResult is the result of Email/query.
type emailQueryResult struct {
	*core.QueryResult
	CollapseThreads bool `json:"collapseThreads"`
}

func (m *Methods) emailQuery(ctx context.Context, c *core.Call, a *emailQueryArguments) (any, error) {
	id, v, err := m.current(ctx, c)
	if err != nil {
		return nil, err
	}
	ids, err := m.queryEmails(ctx, c, id, v, a.Filter, a.Sort, a.CollapseThreads)
	if err != nil {
		return nil, err
	}
	r, err := a.Window(ids, maxQuery)
	if err != nil {
		return nil, err
	}
	r.QueryState, r.CanChanges = StateOf(v.state), true
	return emailQueryResult{r, a.CollapseThreads}, nil
}

// emailQueryChanges is Email/queryChanges (section 4.5). The messages of each thread that changed leave the results, and those that are in them now
// come back, because filters and the order can depend on the thread.
func (m *Methods) emailQueryChanges(ctx context.Context, c *core.Call, a *emailQueryChangesArguments) (any, error) {
	if err := a.Check(); err != nil {
		return nil, err
	}
	since, changes, v, err := m.since(ctx, c, a.SinceQueryState)
	if err != nil {
		return nil, err
	}
	id, err := account(c)
	if err != nil {
		return nil, err
	}
	ids, err := m.queryEmails(ctx, c, id, v, a.Filter, a.Sort, a.CollapseThreads)
	if err != nil {
		return nil, err
	}
	affected := map[core.ID]bool{}
	of := func(email mailbox.EmailID, thread mailbox.ThreadID) {
		affected[emailID(email)] = true
		for _, other := range v.thread(thread) {
			affected[emailID(other.Email)] = true
		}
	}
	for i := range changes.Messages {
		of(changes.Messages[i].Email, changes.Messages[i].Thread)
	}
	for _, r := range changes.Removed {
		of(r.Email, r.Thread)
	}
	r := &core.QueryChangesResult{AccountID: a.AccountID, OldState: since.String(), NewState: StateOf(v.state), Removed: []core.ID{}, Added: []core.Added{}}
	for email := range affected {
		r.Removed = append(r.Removed, email)
	}
	slices.Sort(r.Removed)
	for i, email := range ids {
		if affected[email] {
			r.Added = append(r.Added, core.Added{ID: email, Index: i})
		}
	}
	return finishQueryChanges(&a.QueryChangesArguments, r, len(ids))
}

// queryEmails returns the messages that match, in their order.
func (m *Methods) queryEmails(ctx context.Context, c *core.Call, account mailbox.AccountID, v *view, filter *core.Filter, sort []core.Comparator, collapse bool) ([]core.ID, error) {
	q := &query{methods: m, call: c, account: account, view: v}
	found, err := q.filtered(ctx, filter)
	if err != nil {
		return nil, err
	}
	if found, err = q.sorted(ctx, found, sort); err != nil {
		return nil, err
	}
	ids := make([]core.ID, 0, len(found))
	var seen map[mailbox.ThreadID]bool
	if collapse {
		seen = make(map[mailbox.ThreadID]bool, len(found))
	}
	for _, message := range found {
		if collapse {
			if seen[message.Thread] {
				continue
			}
			seen[message.Thread] = true
		}
		ids = append(ids, emailID(message.Email))
	}
	return ids, nil
}

// A query evaluates a filter and a sort order on a view.
type query struct {
	methods *Methods
	call    *core.Call
	account mailbox.AccountID
	view    *view
	err     error // of reading a message

	filters *mailbox.SearchReader
	at      int // the message that is examined

	body mailbox.EmailID // the message that has the text, because several conditions can read it
	text string
}

// A test is a condition.
type test func(ctx context.Context, m *mailbox.Message) bool

func (q *query) filtered(ctx context.Context, filter *core.Filter) ([]*mailbox.Message, error) {
	tests := map[*core.Filter][]test{}
	err := filter.Each(func(f *core.Filter) (err error) {
		tests[f], err = q.condition(f.Condition)
		return err
	})
	if err != nil {
		return nil, err
	}
	q.filters = q.methods.store.SearchReader(len(q.view.messages), func(i int) mailbox.ContentID { return q.view.messages[i].Content })
	var found []*mailbox.Message
	for i := range q.view.messages {
		message := &q.view.messages[i]
		q.at = i
		matches := filter.Matches(func(f *core.Filter) bool {
			return !slices.ContainsFunc(tests[f], func(t test) bool { return !t(ctx, message) })
		})
		if q.err != nil {
			return nil, q.err
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if matches {
			found = append(found, message)
		}
	}
	return found, nil
}

// condition returns the tests of a FilterCondition (section 4.4.1), the cheap ones first.
func (q *query) condition(object core.Object) ([]test, error) {
	var in *core.ID
	var otherThan []core.ID
	var before, after *core.UTCDate
	var minSize, maxSize *core.UnsignedInt
	var all, some, none, has, not *string
	var attachment *bool
	var text, from, to, cc, bcc, subject, body *string
	var field []string
	err := condition(object, map[string]any{
		"inMailbox": &in, "inMailboxOtherThan": &otherThan, "before": &before, "after": &after, "minSize": &minSize, "maxSize": &maxSize,
		"allInThreadHaveKeyword": &all, "someInThreadHaveKeyword": &some, "noneInThreadHaveKeyword": &none, "hasKeyword": &has, "notKeyword": &not,
		"hasAttachment": &attachment, "text": &text, "from": &from, "to": &to, "cc": &cc, "bcc": &bcc, "subject": &subject, "body": &body, "header": &field,
	})
	if err != nil {
		return nil, err
	}
	var tests []test
	add := func(t func(m *mailbox.Message) bool) {
		tests = append(tests, func(_ context.Context, m *mailbox.Message) bool { return t(m) })
	}
	if in != nil {
		resolved, ok := q.call.Resolve(*in)
		id, ok := parsedMailbox(resolved, ok)
		add(func(m *mailbox.Message) bool { return ok && m.Mailbox == id })
	}
	if _, given := object.Get("inMailboxOtherThan"); given {
		except := map[mailbox.MailboxID]bool{}
		for _, id := range otherThan {
			resolved, ok := q.call.Resolve(id)
			if n, ok := parsedMailbox(resolved, ok); ok {
				except[n] = true
			}
		}
		add(func(m *mailbox.Message) bool { return !except[m.Mailbox] })
	}
	if before != nil {
		add(func(m *mailbox.Message) bool { return m.Received.Before(before.Time) })
	}
	if after != nil {
		add(func(m *mailbox.Message) bool { return !m.Received.Before(after.Time) })
	}
	if minSize != nil {
		add(func(m *mailbox.Message) bool { return m.Size >= int64(*minSize) })
	}
	if maxSize != nil {
		add(func(m *mailbox.Message) bool { return m.Size < int64(*maxSize) })
	}
	if has != nil {
		add(func(m *mailbox.Message) bool { return hasKeyword(m, *has) })
	}
	if not != nil {
		add(func(m *mailbox.Message) bool { return !hasKeyword(m, *not) })
	}
	if all != nil {
		add(func(m *mailbox.Message) bool { return q.allInThread(m, *all) })
	}
	if some != nil {
		add(func(m *mailbox.Message) bool { return q.someInThread(m, *some) })
	}
	if none != nil {
		add(func(m *mailbox.Message) bool { return !q.someInThread(m, *none) })
	}
	if attachment != nil {
		tests = append(tests, func(ctx context.Context, m *mailbox.Message) bool {
			d := q.digest(ctx, m)
			return d != nil && d.hasAttachment == *attachment
		})
	}
	if field != nil {
		t, err := q.fieldTest(field)
		if err != nil {
			return nil, err
		}
		tests = append(tests, t)
	}
	for _, s := range []struct {
		text   *string
		fields []string
	}{{from, []string{"From"}}, {to, []string{"To"}}, {cc, []string{"Cc"}}, {bcc, []string{"Bcc"}}, {subject, []string{"Subject"}}} {
		if s.text != nil {
			words := searchWords(*s.text)
			patterns := patternsOf(words)
			tests = append(tests, func(ctx context.Context, m *mailbox.Message) bool {
				if !q.mayContain(ctx, patterns) {
					return false
				}
				d := q.digest(ctx, m)
				return d != nil && containsAll(fieldsText(d, s.fields), words)
			})
		}
	}
	if body != nil {
		words := searchWords(*body)
		patterns := patternsOf(words)
		tests = append(tests, func(ctx context.Context, m *mailbox.Message) bool {
			return q.mayContain(ctx, patterns) && containsAll(q.bodyText(ctx, m), words)
		})
	}
	if text != nil {
		words := searchWords(*text)
		patterns := patternsOf(words)
		tests = append(tests, func(ctx context.Context, m *mailbox.Message) bool {
			if !q.mayContain(ctx, patterns) {
				return false
			}
			d := q.digest(ctx, m)
			if d == nil {
				return false
			}
			inHeader := fieldsText(d, []string{"From", "To", "Cc", "Bcc", "Subject"})
			return containsAll(inHeader, words) || containsAll(inHeader+"\n"+q.bodyText(ctx, m), words)
		})
	}
	return tests, nil
}

// fieldTest is the condition header: a field exists, or has a text.
func (q *query) fieldTest(field []string) (test, error) {
	if len(field) < 1 || len(field) > 2 {
		return nil, core.Fail(core.InvalidArguments, "the value of header in the filter must have one or two elements: a name and a text")
	}
	var patterns []searchfilter.Pattern
	if len(field) == 2 {
		patterns = patternsOf(field[1:])
	}
	return func(ctx context.Context, m *mailbox.Message) bool {
		if !q.mayContain(ctx, patterns) {
			return false
		}
		d := q.digest(ctx, m)
		if d == nil {
			return false
		}
		values, _ := headerProperty{name: field[0], form: "asText", all: true}.value([]byte(d.header)).([]any)
		return slices.ContainsFunc(values, func(value any) bool {
			text, _ := value.(string)
			return len(field) == 1 || strings.Contains(fold(text), fold(field[1]))
		})
	}, nil
}

// patternsOf prepares words for the index.
func patternsOf(words []string) (patterns []searchfilter.Pattern) {
	for _, word := range words {
		patterns = append(patterns, searchfilter.NewPattern(word))
	}
	return patterns
}

// mayContain reports whether the message that is examined can contain all words. An error ends the query.
func (q *query) mayContain(ctx context.Context, words []searchfilter.Pattern) bool {
	for _, word := range words {
		may, err := q.filters.MayContain(ctx, q.at, word)
		if err != nil && q.err == nil {
			q.err = err
		}
		if !may {
			return false
		}
	}
	return true
}

func hasKeyword(m *mailbox.Message, keyword string) bool {
	for flag, name := range systemKeywords {
		if strings.EqualFold(name, keyword) {
			return m.Flags&flag != 0
		}
	}
	for k := range strings.FieldsSeq(m.Keywords) {
		if strings.EqualFold(k, keyword) {
			return true
		}
	}
	return false
}

func (q *query) allInThread(m *mailbox.Message, keyword string) bool {
	return !slices.ContainsFunc(q.view.thread(m.Thread), func(other *mailbox.Message) bool { return !hasKeyword(other, keyword) })
}

func (q *query) someInThread(m *mailbox.Message, keyword string) bool {
	return slices.ContainsFunc(q.view.thread(m.Thread), func(other *mailbox.Message) bool { return hasKeyword(other, keyword) })
}

// digest returns the digest of a message, or nil if it is gone. An error ends the query.
func (q *query) digest(ctx context.Context, m *mailbox.Message) *digest {
	if q.err != nil {
		return nil
	}
	d, err := q.methods.digest(ctx, q.account, m)
	if err != nil && !isGone(err) {
		q.err = err
	}
	return d
}

// bodyText returns the text of the body of a message, folded.
func (q *query) bodyText(ctx context.Context, m *mailbox.Message) string {
	if q.err != nil {
		return ""
	}
	if q.body == m.Email {
		return q.text
	}
	key := keyOf(q.account, m)
	text, known := q.methods.texts.get(key)
	if !known {
		whole, err := q.methods.bodyText(ctx, q.account, m)
		if err != nil && !isGone(err) {
			q.err = err
		}
		if text = searchedText(fold(whole)); err == nil {
			q.methods.texts.put(key, text)
		}
	}
	q.body, q.text = m.Email, string(text)
	return q.text
}

// A searchedText is the folded text of a message. It does not change.
type searchedText string

func (t searchedText) cost() int { return 200 + len(t) }

// emailSortProperties are the properties by which messages can be sorted (section 4.4.2).
var emailSortProperties = []string{"receivedAt", "size", "from", "to", "subject", "sentAt", "hasKeyword", "allInThreadHaveKeyword", "someInThreadHaveKeyword"}

// An emailKey is a key of a sort order: the values of all messages are computed once.
type emailKey struct {
	numbers  map[mailbox.EmailID]int64
	texts    map[mailbox.EmailID]string
	descends bool
}

func (k *emailKey) compare(a, b *mailbox.Message) int {
	if k.descends {
		a, b = b, a
	}
	if k.texts != nil {
		return cmp.Compare(k.texts[a.Email], k.texts[b.Email])
	}
	return cmp.Compare(k.numbers[a.Email], k.numbers[b.Email])
}

// sorted sorts messages. Messages with the same keys are in the order of their EmailIDs, in the direction of the first key.
func (q *query) sorted(ctx context.Context, found []*mailbox.Message, sort []core.Comparator) ([]*mailbox.Message, error) {
	keys := make([]emailKey, len(sort))
	for i := range sort {
		if err := q.key(ctx, &keys[i], &sort[i], found); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(found, func(a, b *mailbox.Message) int {
		for i := range keys {
			if c := keys[i].compare(a, b); c != 0 {
				return c
			}
		}
		if len(keys) > 0 && keys[0].descends {
			a, b = b, a
		}
		return cmp.Compare(a.Email, b.Email)
	})
	return found, nil
}

func (q *query) key(ctx context.Context, k *emailKey, s *core.Comparator, found []*mailbox.Message) error {
	k.descends = s.Descends()
	collate, err := collation(s.Collation)
	if err != nil {
		return err
	}
	var number func(m *mailbox.Message) int64
	var text func(d *digest) string
	bit := func(b bool) int64 {
		if b {
			return 1
		}
		return 0
	}
	switch s.Property {
	case "receivedAt":
		number = func(m *mailbox.Message) int64 { return m.Received.Unix() }
	case "size":
		number = func(m *mailbox.Message) int64 { return m.Size }
	case "hasKeyword":
		number = func(m *mailbox.Message) int64 { return bit(hasKeyword(m, s.Keyword)) }
	case "allInThreadHaveKeyword":
		number = func(m *mailbox.Message) int64 { return bit(q.allInThread(m, s.Keyword)) }
	case "someInThreadHaveKeyword":
		number = func(m *mailbox.Message) int64 { return bit(q.someInThread(m, s.Keyword)) }
	case "sentAt":
		number = func(m *mailbox.Message) int64 {
			if d := q.digest(ctx, m); d != nil {
				if at, ok := header.Date(lastField(d, "Date")); ok {
					return at.Unix()
				}
			}
			return m.Received.Unix()
		}
	case "from", "to":
		name := s.Property
		text = func(d *digest) string {
			switch list := header.Addresses(lastField(d, name)); {
			case len(list) == 0:
				return ""
			case list[0].Name != nil:
				return *list[0].Name
			default:
				return list[0].Email
			}
		}
	case "subject":
		text = func(d *digest) string { return baseSubject(header.Text(lastField(d, "Subject"))) }
	default:
		return core.Fail(core.UnsupportedSort, fmt.Sprintf("messages cannot be sorted by %.80q; use one of %s", s.Property, strings.Join(emailSortProperties, ", ")))
	}
	if strings.HasSuffix(s.Property, "Keyword") && s.Keyword == "" {
		return core.Fail(core.InvalidArguments, "a sort by "+s.Property+" needs a keyword")
	}
	if text == nil {
		k.numbers = make(map[mailbox.EmailID]int64, len(found))
	} else {
		k.texts = make(map[mailbox.EmailID]string, len(found))
	}
	for _, m := range found {
		if text == nil {
			k.numbers[m.Email] = number(m)
		} else if d := q.digest(ctx, m); d != nil {
			k.texts[m.Email] = collate(text(d))
		}
		if q.err != nil {
			return q.err
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return nil
}

// lastField returns the raw value of the last field with a name.
func lastField(d *digest, name string) string {
	value, _ := headerProperty{name: name, form: "asRaw"}.value([]byte(d.header)).(string)
	return value
}

// baseSubject removes the prefixes of replies and of forwarded messages.
func baseSubject(subject string) string {
	for {
		cut := subject
		for _, prefix := range []string{"re:", "fw:", "fwd:"} {
			if len(cut) >= len(prefix) && strings.EqualFold(cut[:len(prefix)], prefix) {
				cut = strings.TrimSpace(cut[len(prefix):])
			}
		}
		if cut == subject {
			return subject
		}
		subject = cut
	}
}
