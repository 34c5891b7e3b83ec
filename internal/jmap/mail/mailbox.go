package mail

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"fanfare.dev/fanfare/internal/jmap/core"
	"fanfare.dev/fanfare/internal/mailbox"
)

// mailboxProperties are those of a Mailbox (RFC 8621, section 2).
var mailboxProperties = []string{"id", "name", "parentId", "role", "sortOrder", "totalEmails", "unreadEmails", "totalThreads", "unreadThreads", "myRights", "isSubscribed"}

// mailboxGet is Mailbox/get (section 2.1).
func (m *Methods) mailboxGet(ctx context.Context, c *core.Call, a *core.GetArguments) (any, error) {
	if err := a.Check(c, mailboxProperties); err != nil {
		return nil, err
	}
	_, v, err := m.current(ctx, c)
	if err != nil {
		return nil, err
	}
	r := &core.GetResult{AccountID: a.AccountID, State: StateOf(v.state), List: []any{}, NotFound: []core.ID{}}
	var counts map[mailbox.MailboxID]*mailboxCounts
	if a.Wants("totalEmails") || a.Wants("unreadEmails") || a.Wants("totalThreads") || a.Wants("unreadThreads") {
		counts = v.counts()
	}
	if a.IDs == nil {
		for _, box := range v.sortedBoxes() {
			r.List = append(r.List, a.Pick(mailboxObject(&box, counts[box.ID])))
		}
		return r, nil
	}
	for _, id := range *a.IDs {
		n, _ := parseMailboxID(id)
		box, ok := v.boxes[n]
		if !ok {
			r.NotFound = append(r.NotFound, id)
			continue
		}
		r.List = append(r.List, a.Pick(mailboxObject(&box, counts[n])))
	}
	return r, nil
}

func (v *view) sortedBoxes() []mailbox.Mailbox {
	list := make([]mailbox.Mailbox, 0, len(v.boxes))
	for _, box := range v.boxes {
		list = append(list, box)
	}
	slices.SortFunc(list, func(a, b mailbox.Mailbox) int { return cmp.Compare(a.ID, b.ID) })
	return list
}

// mailboxCounts are the counts of a mailbox.
type mailboxCounts struct{ emails, unread, threads, unreadThreads int }

// isUnread reports whether a message counts as unread.
func isUnread(m *mailbox.Message) bool { return m.Flags&(mailbox.Seen|mailbox.Draft) == 0 }

// counts counts the messages and threads of all mailboxes. For the threads of the trash only the messages in it count, and for those of
// other mailboxes only the messages that are not in the trash.
func (v *view) counts() map[mailbox.MailboxID]*mailboxCounts {
	v.countsOnce.Do(func() { v.counted = v.count() })
	return v.counted
}

func (v *view) count() map[mailbox.MailboxID]*mailboxCounts {
	all := make(map[mailbox.MailboxID]*mailboxCounts, len(v.boxes))
	for id := range v.boxes {
		all[id] = &mailboxCounts{}
	}
	v.thread(0) // makes the index
	var in []mailbox.MailboxID
	for _, thread := range v.threads {
		in = in[:0]
		unread, unreadTrash := false, false
		for _, m := range thread {
			c := all[m.Mailbox]
			if c == nil {
				continue
			}
			c.emails++
			if isUnread(m) {
				c.unread++
				if v.boxes[m.Mailbox].Role == mailbox.Trash {
					unreadTrash = true
				} else {
					unread = true
				}
			}
			if !slices.Contains(in, m.Mailbox) {
				in = append(in, m.Mailbox)
			}
		}
		for _, id := range in {
			c := all[id]
			c.threads++
			if v.boxes[id].Role == mailbox.Trash && unreadTrash || v.boxes[id].Role != mailbox.Trash && unread {
				c.unreadThreads++
			}
		}
	}
	return all
}

func mailboxObject(box *mailbox.Mailbox, n *mailboxCounts) map[string]any {
	movable := box.ID != mailbox.InboxID
	object := map[string]any{
		"id": mailboxID(box.ID), "name": box.Name, "parentId": nil, "role": nil, "sortOrder": box.SortOrder, "isSubscribed": box.Subscribed,
		"myRights": map[string]bool{"mayReadItems": true, "mayAddItems": true, "mayRemoveItems": true, "maySetSeen": true, "maySetKeywords": true, "mayCreateChild": true, "mayRename": movable, "mayDelete": movable, "maySubmit": true},
	}
	if box.Parent != 0 {
		object["parentId"] = mailboxID(box.Parent)
	}
	if box.Role != mailbox.NoRole {
		object["role"] = string(box.Role)
	}
	if n != nil {
		object["totalEmails"], object["unreadEmails"], object["totalThreads"], object["unreadThreads"] = n.emails, n.unread, n.threads, n.unreadThreads
	}
	return object
}

// mailboxChangesResult is the result of Mailbox/changes.
type mailboxChangesResult struct {
	*core.ChangesResult
	UpdatedProperties []string `json:"updatedProperties"` // null: any
}

// mailboxChanges is Mailbox/changes (section 2.2).
func (m *Methods) mailboxChanges(ctx context.Context, c *core.Call, a *core.ChangesArguments) (any, error) {
	since, changes, v, err := m.since(ctx, c, a.SinceState)
	if err != nil {
		return nil, err
	}
	r, err := changesOf(a, since, v.state, mailboxEvents(since, changes, v), func(n int64) core.ID { return mailboxID(mailbox.MailboxID(n)) })
	if err != nil {
		return nil, err
	}
	return mailboxChangesResult{r, updatedProperties(r, since, v)}, nil
}

// countProperties are the properties that change with messages.
var countProperties = []string{"totalEmails", "unreadEmails", "totalThreads", "unreadThreads"}

// updatedProperties returns countProperties if no other property of an updated mailbox has changed since a state, or else nil.
func updatedProperties(r *core.ChangesResult, since position, v *view) []string {
	for _, id := range r.Updated {
		n, _ := parseMailboxID(id)
		if box, ok := v.boxes[n]; !ok || since.before(position{box.Edited, int64(n)}) {
			return nil
		}
	}
	if len(r.Updated) == 0 {
		return nil
	}
	return countProperties
}

// mailboxEvents returns what happened to mailboxes. The counts of a mailbox can change with each message of a thread that it has a message of.
func mailboxEvents(since position, changes *mailbox.Changes, v *view) []event {
	changed := map[mailbox.MailboxID]mailbox.ModSeq{}
	touch := func(id mailbox.MailboxID, at mailbox.ModSeq) { changed[id] = max(changed[id], at) }
	for i := range changes.Messages {
		m := &changes.Messages[i]
		touch(m.Mailbox, m.ModSeq)
		for _, other := range v.thread(m.Thread) {
			touch(other.Mailbox, m.ModSeq)
		}
	}
	for _, r := range changes.Removed {
		touch(r.Mailbox, r.ModSeq)
		for _, other := range v.thread(r.Thread) {
			touch(other.Mailbox, r.ModSeq)
		}
	}
	h := newHistory(since)
	for id, box := range v.boxes {
		h.put(int64(id), box.Created, max(box.Changed, changed[id]), false)
	}
	for _, r := range changes.RemovedMailboxes {
		h.put(int64(r.ID), 0, r.ModSeq, true)
	}
	return h.list()
}

// mailboxQueryArguments are those of Mailbox/query (section 2.3).
type mailboxQueryArguments struct {
	core.QueryArguments
	SortAsTree   bool `json:"sortAsTree"`
	FilterAsTree bool `json:"filterAsTree"`
}

type mailboxQueryChangesArguments struct {
	core.QueryChangesArguments
	SortAsTree   bool `json:"sortAsTree"`
	FilterAsTree bool `json:"filterAsTree"`
}

func (m *Methods) mailboxQuery(ctx context.Context, c *core.Call, a *mailboxQueryArguments) (any, error) {
	_, v, err := m.current(ctx, c)
	if err != nil {
		return nil, err
	}
	ids, err := v.queryMailboxes(c, a.Filter, a.Sort, a.SortAsTree, a.FilterAsTree)
	if err != nil {
		return nil, err
	}
	r, err := a.Window(ids, len(ids))
	if err != nil {
		return nil, err
	}
	r.QueryState, r.CanChanges = StateOf(v.state), true
	return r, nil
}

// mailboxQueryChanges is Mailbox/queryChanges (section 2.4). If anything changed, all mailboxes leave the results and come back, because
// there are few, and the place of one can depend on others.
func (m *Methods) mailboxQueryChanges(ctx context.Context, c *core.Call, a *mailboxQueryChangesArguments) (any, error) {
	if err := a.Check(); err != nil {
		return nil, err
	}
	since, changes, v, err := m.since(ctx, c, a.SinceQueryState)
	if err != nil {
		return nil, err
	}
	ids, err := v.queryMailboxes(c, a.Filter, a.Sort, a.SortAsTree, a.FilterAsTree)
	if err != nil {
		return nil, err
	}
	r := &core.QueryChangesResult{AccountID: a.AccountID, OldState: since.String(), NewState: StateOf(v.state), Removed: []core.ID{}, Added: []core.Added{}}
	if len(changes.Mailboxes)+len(changes.RemovedMailboxes) > 0 {
		for _, box := range v.sortedBoxes() {
			r.Removed = append(r.Removed, mailboxID(box.ID))
		}
		for _, box := range changes.RemovedMailboxes {
			r.Removed = append(r.Removed, mailboxID(box.ID))
		}
		for i, id := range ids {
			r.Added = append(r.Added, core.Added{ID: id, Index: i})
		}
	}
	return finishQueryChanges(&a.QueryChangesArguments, r, len(ids))
}

// finishQueryChanges adds the total, and refuses more changes than the client wants.
func finishQueryChanges(a *core.QueryChangesArguments, r *core.QueryChangesResult, total int) (any, error) {
	if a.MaxChanges != nil && len(r.Removed)+len(r.Added) > int(*a.MaxChanges) {
		return nil, core.Fail(core.TooManyChanges, fmt.Sprintf("there are %d changes", len(r.Removed)+len(r.Added)))
	}
	if a.CalculateTotal {
		r.Total = &total
	}
	return r, nil
}

// queryMailboxes returns the mailboxes that match, in their order.
func (v *view) queryMailboxes(c *core.Call, filter *core.Filter, sort []core.Comparator, asTree, filterAsTree bool) ([]core.ID, error) {
	tests := map[*core.Filter]func(*mailbox.Mailbox) bool{}
	err := filter.Each(func(f *core.Filter) error {
		test, err := mailboxCondition(c, f.Condition)
		tests[f] = test
		return err
	})
	if err != nil {
		return nil, err
	}
	compare, err := mailboxOrder(sort)
	if err != nil {
		return nil, err
	}
	matches := map[mailbox.MailboxID]bool{}
	for id, box := range v.boxes {
		matches[id] = filter.Matches(func(f *core.Filter) bool { return tests[f](&box) })
	}
	if filterAsTree { // a mailbox matches only if those above it do
		own := matches
		matches = map[mailbox.MailboxID]bool{}
		for id := range v.boxes {
			all, at := true, id
			for depth := 0; at != 0 && depth <= len(v.boxes); depth++ {
				all = all && own[at]
				at = v.boxes[at].Parent
			}
			matches[id] = all
		}
	}
	boxes := v.sortedBoxes()
	slices.SortStableFunc(boxes, func(a, b mailbox.Mailbox) int { return compare(&a, &b) })
	if asTree {
		boxes = treeOrder(boxes)
	}
	ids := []core.ID{}
	for i := range boxes {
		if matches[boxes[i].ID] {
			ids = append(ids, mailboxID(boxes[i].ID))
		}
	}
	return ids, nil
}

// treeOrder puts each mailbox after its parent and before the next sibling of it.
func treeOrder(boxes []mailbox.Mailbox) []mailbox.Mailbox {
	children := map[mailbox.MailboxID][]mailbox.Mailbox{}
	for _, box := range boxes {
		children[box.Parent] = append(children[box.Parent], box)
	}
	ordered := make([]mailbox.Mailbox, 0, len(boxes))
	var add func(parent mailbox.MailboxID)
	add = func(parent mailbox.MailboxID) {
		for _, box := range children[parent] {
			ordered = append(ordered, box)
			add(box.ID)
		}
	}
	add(0)
	return ordered
}

// condition reads the members of a FilterCondition by their names.
func condition(object core.Object, known map[string]any) error {
	for _, m := range object {
		into, ok := known[m.Name]
		if !ok {
			return core.Fail(core.UnsupportedFilter, fmt.Sprintf("the filter has %.80q, which is not a property that can be filtered by", m.Name))
		}
		if err := json.Unmarshal(m.Value, into); err != nil {
			return core.Fail(core.InvalidArguments, "the value of "+m.Name+" in the filter "+core.Wrong(err))
		}
	}
	return nil
}

func mailboxCondition(c *core.Call, object core.Object) (func(*mailbox.Mailbox) bool, error) {
	var parent, role *string
	var name string
	var hasRole, subscribed *bool
	if err := condition(object, map[string]any{"parentId": &parent, "name": &name, "role": &role, "hasAnyRole": &hasRole, "isSubscribed": &subscribed}); err != nil {
		return nil, err
	}
	_, byParent := object.Get("parentId")
	_, byRole := object.Get("role")
	var of mailbox.MailboxID
	if parent != nil {
		id, ok := c.Resolve(core.ID(*parent))
		if of, ok = parsedMailbox(id, ok); !ok {
			return func(*mailbox.Mailbox) bool { return false }, nil
		}
	}
	return func(box *mailbox.Mailbox) bool {
		switch {
		case byParent && box.Parent != of,
			byRole && (role == nil && box.Role != mailbox.NoRole || role != nil && string(box.Role) != *role),
			name != "" && !strings.Contains(strings.ToLower(box.Name), strings.ToLower(name)),
			hasRole != nil && (box.Role != mailbox.NoRole) != *hasRole,
			subscribed != nil && box.Subscribed != *subscribed:
			return false
		}
		return true
	}, nil
}

func parsedMailbox(id core.ID, resolved bool) (mailbox.MailboxID, bool) {
	n, ok := parseMailboxID(id)
	return n, ok && resolved
}

func mailboxOrder(sort []core.Comparator) (func(a, b *mailbox.Mailbox) int, error) {
	var keys []func(a, b *mailbox.Mailbox) int
	for i := range sort {
		s := &sort[i]
		collate, err := collation(s.Collation)
		if err != nil {
			return nil, err
		}
		var key func(a, b *mailbox.Mailbox) int
		switch s.Property {
		case "sortOrder":
			key = func(a, b *mailbox.Mailbox) int { return cmp.Compare(a.SortOrder, b.SortOrder) }
		case "name":
			key = func(a, b *mailbox.Mailbox) int { return cmp.Compare(collate(a.Name), collate(b.Name)) }
		case "parentId":
			key = func(a, b *mailbox.Mailbox) int { return cmp.Compare(a.Parent, b.Parent) }
		default:
			return nil, core.Fail(core.UnsupportedSort, fmt.Sprintf("mailboxes cannot be sorted by %.80q; use sortOrder, name or parentId", s.Property))
		}
		keys = append(keys, directed(key, s.Descends()))
	}
	return func(a, b *mailbox.Mailbox) int { return compareBy(keys, a, b) }, nil
}

func directed[T any](key func(a, b T) int, descends bool) func(a, b T) int {
	if !descends {
		return key
	}
	return func(a, b T) int { return key(b, a) }
}

func compareBy[T any](keys []func(a, b T) int, a, b T) int {
	for _, key := range keys {
		if c := key(a, b); c != 0 {
			return c
		}
	}
	return 0
}

// Collations are the collation algorithms that a sort order can name.
var Collations = []string{"i;ascii-casemap", "i;octet", "i;unicode-casemap"}

// collation returns the key of a text in a collation; without one, in i;unicode-casemap.
func collation(name string) (func(string) string, error) {
	switch name {
	case "", "i;unicode-casemap":
		return strings.ToUpper, nil
	case "i;octet":
		return func(text string) string { return text }, nil
	case "i;ascii-casemap":
		return func(text string) string {
			return strings.Map(func(r rune) rune {
				if r >= 'a' && r <= 'z' {
					r -= 'a' - 'A'
				}
				return r
			}, text)
		}, nil
	}
	return nil, core.Fail(core.UnsupportedSort, fmt.Sprintf("the collation %.80q is not supported; use one of %s", name, strings.Join(Collations, ", ")))
}
