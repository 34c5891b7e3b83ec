package storetest_test

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/catalog/audit"
	"fanfare.dev/fanfare/internal/people/suppression"
	"fanfare.dev/fanfare/internal/store/control"
)

// controlModel is what should be kept of people and configuration, each in the
// text that it is compared by.
type controlModel struct {
	seq           uint64
	config        map[string]string
	filters       map[uint32]string
	subscribers   map[fanfare.RowID]control.SubscriberRecord
	subscriptions map[fanfare.RowID]control.SubscriptionRecord
	audit         map[int64]audit.Entry
	suppressions  map[string]string
	erasures      map[fanfare.RowID]string
}

func newControlModel(seq uint64) *controlModel {
	return &controlModel{seq: seq, config: map[string]string{}, filters: map[uint32]string{}, subscribers: map[fanfare.RowID]control.SubscriberRecord{},
		subscriptions: map[fanfare.RowID]control.SubscriptionRecord{}, audit: map[int64]audit.Entry{}, suppressions: map[string]string{}, erasures: map[fanfare.RowID]string{}}
}

func (m *controlModel) commit(b *control.Batch) {
	if b.ChangeSeq != 0 {
		m.seq = b.ChangeSeq
	}
	for _, c := range b.Config {
		m.config[configKey(&c)] = configText(&c)
	}
	for _, f := range b.Filters {
		m.filters[f.Number] = f.Text
	}
	for partition := range b.Subscribers {
		for _, r := range b.Subscribers[partition] {
			m.subscribers[r.Place] = r
		}
		for _, r := range b.Subscriptions[partition] {
			r.CreatedAt, r.CreatedSeq = b.At, b.ChangeSeq
			m.subscriptions[r.Place] = r
		}
	}
	for _, r := range b.SubscriberUpdates {
		if was, ok := m.subscribers[r.Place]; ok {
			is := *r
			is.Service = was.Service
			m.subscribers[r.Place] = is
		}
	}
	for _, r := range b.SubscriptionUpdates {
		if was, ok := m.subscriptions[r.Place]; ok {
			is := *r
			is.Subscriber, is.Topic, is.CreatedAt, is.CreatedSeq = was.Subscriber, was.Topic, was.CreatedAt, was.CreatedSeq
			if !is.Ended {
				is.EndedAt, is.EndedSeq, is.Reason = 0, 0, ""
			}
			m.subscriptions[r.Place] = is
		}
	}
	for _, r := range b.Audit {
		m.audit[r.ID] = r
	}
	if b.AuditBefore != 0 {
		maps.DeleteFunc(m.audit, func(id int64, _ audit.Entry) bool { return id < b.AuditBefore })
	}
	for _, s := range b.Suppressions {
		if s.Lifted {
			delete(m.suppressions, suppressionKey(&s))
		} else {
			m.suppressions[suppressionKey(&s)] = suppressionText(&s)
		}
	}
	for _, e := range b.Erasures {
		if e.Body == nil {
			delete(m.erasures, e.Place)
		} else {
			m.erasures[e.Place] = string(e.Body)
		}
	}
	for _, number := range b.ErasedFilters {
		if _, ok := m.filters[number]; ok {
			m.filters[number] = ""
		}
	}
	for id, name := range b.RenamedAuditEntries {
		if r, ok := m.audit[id]; ok {
			r.Name = name
			m.audit[id] = r
		}
	}
}

func configKey(c *control.ConfigRecord) string { return fmt.Sprint(c.Kind, " ", c.Number) }
func configText(c *control.ConfigRecord) string {
	return fmt.Sprintf("%d %q %s %v", c.Service, c.Name, c.Body, c.Deleted)
}
func suppressionKey(s *suppression.Record) string {
	return fmt.Sprintf("%d %d %x", s.Service, s.Kind, s.Hash)
}
func suppressionText(s *suppression.Record) string {
	return fmt.Sprintf("%q %d %d %d", s.Reason, s.At, s.Until, s.Tag)
}

func subscriberText(r *control.SubscriberRecord) string {
	return fmt.Sprintf("%d: %d %d %q %q %q %q %q, %d %q %d", r.Place, r.Service, r.Kind, r.ID, r.Address, r.Locale, r.TimeZone, r.Attributes, r.Subscriber, r.RowsJSON, r.Flags)
}

func subscriptionText(r *control.SubscriptionRecord) string {
	return fmt.Sprintf("%d: %d %d %d %q, %d %d %q %q, %v %d %d, %d %d %q, %v %d %d %d, %d %q", r.Place, r.Subscriber, r.Topic, r.Channel, r.ID, r.Filter, r.Rule, r.Params, r.Data,
		r.Ended, r.CreatedAt, r.CreatedSeq, r.EndedAt, r.EndedSeq, r.Reason, r.Paused, r.PausedAt, r.PausedSeq, r.ResumedSeq,
		r.Slot, r.PastSlots)
}

func auditText(r *audit.Entry) string {
	return fmt.Sprintf("%d: %v %v %q", r.ID, r.Actor, r.Operation, r.Detail)
}

// controlQuestions is what a store is asked while it is written.
type controlQuestions struct {
	places   []fanfare.RowID // ascending
	scanned  control.Range
	from, to int64 // of the audit
	limit    int
}

func (m *controlModel) answers(q *controlQuestions) (lines answerLines) {
	for _, p := range q.places {
		if r, ok := m.subscribers[p]; ok {
			lines.add("subscriber at", p, "%s", subscriberText(&r))
		}
	}
	for _, p := range q.places {
		if r, ok := m.subscriptions[p]; ok {
			lines.add("subscription at", p, "%s", subscriptionText(&r))
		}
	}
	within := func(p fanfare.RowID) bool { return p >= q.scanned.First && p <= q.scanned.Last }
	for _, p := range slices.Sorted(maps.Keys(m.subscribers)) {
		if r := m.subscribers[p]; within(p) {
			lines.add("subscriber in", p, "%s", subscriberText(&r))
		}
	}
	for _, p := range slices.Sorted(maps.Keys(m.subscriptions)) {
		if r := m.subscriptions[p]; within(p) {
			lines.add("subscription in", p, "%s", subscriptionText(&r))
		}
	}
	ids := slices.SortedFunc(maps.Keys(m.audit), func(a, b int64) int { return cmp.Compare(b, a) })
	visited := 0
	for _, id := range ids {
		if r := m.audit[id]; id >= q.from && id <= q.to && visited < q.limit {
			visited++
			lines.add("audit", id, "%s", auditText(&r))
		}
	}
	if len(ids) > 0 {
		lines.add("audit bounds", "", "%d %d", ids[len(ids)-1], ids[0])
	} else {
		lines.add("audit bounds", "", "0 0")
	}
	return lines
}

func controlAnswers(s *control.Store, q *controlQuestions) (lines answerLines, err error) {
	ctx := context.Background()
	subscriber := func(what string) func(*control.SubscriberRecord) error {
		return func(r *control.SubscriberRecord) error {
			lines.add(what, r.Place, "%s", subscriberText(r))
			return nil
		}
	}
	subscription := func(what string) func(*control.SubscriptionRecord) error {
		return func(r *control.SubscriptionRecord) error {
			lines.add(what, r.Place, "%s", subscriptionText(r))
			return nil
		}
	}
	if err := s.SubscriberRecords(ctx, q.places, subscriber("subscriber at")); err != nil {
		return nil, err
	}
	if err := s.SubscriptionRecords(ctx, q.places, subscription("subscription at")); err != nil {
		return nil, err
	}
	if err := s.ScanSubscribers(ctx, q.scanned, subscriber("subscriber in")); err != nil {
		return nil, err
	}
	if err := s.ScanSubscriptions(ctx, q.scanned, subscription("subscription in")); err != nil {
		return nil, err
	}
	visited := 0
	if err := s.AuditEntries(ctx, q.from, q.to, func(r *audit.Entry) bool {
		if visited == q.limit {
			return false
		}
		visited++
		lines.add("audit", r.ID, "%s", auditText(r))
		return true
	}); err != nil {
		return nil, err
	}
	oldest, latest, err := s.AuditBounds(ctx)
	lines.add("audit bounds", "", "%d %d", oldest, latest)
	return lines, err
}

// everything is what a start should read, in any order.
func (m *controlModel) everything() (lines answerLines) {
	lines.add("change sequence", "", "%d", m.seq)
	for key, text := range m.config {
		lines.add("config", key, "%s", text)
	}
	for number, text := range m.filters {
		lines.add("filter", number, "%q", text)
	}
	for key, text := range m.suppressions {
		lines.add("suppression", key, "%s", text)
	}
	for place, body := range m.erasures {
		lines.add("erasure", place, "%s", body)
	}
	for place, r := range m.subscribers {
		lines.add("subscriber", place, "%s", subscriberText(&r))
	}
	for place, r := range m.subscriptions {
		lines.add("subscription", place, "%s", subscriptionText(&r))
	}
	slices.Sort(lines)
	return lines
}

// loaded reads everything, as a start does, and tells what is of a service, or
// has a place or a number that is mine.
func loaded(s *control.Store, service uint32, mine func(number int64) bool) (lines answerLines, err error) {
	var people, wishes answerLines // each from a goroutine of its own
	last, latest := int64(-1), int64(-1)
	after := func(before *int64, p fanfare.RowID) error {
		if int64(p) <= *before {
			return fmt.Errorf("place %d comes after %d", p, *before)
		}
		*before = int64(p)
		return nil
	}
	services := true // they come first
	err = s.Load(context.Background(), control.Loader{
		ChangeSeq: func(seq uint64) { lines.add("change sequence", "", "%d", seq) },
		Config: func(c *control.ConfigRecord) error {
			if c.Kind == "service" && !services {
				return fmt.Errorf("service %d comes after others", c.Number)
			}
			services = c.Kind == "service"
			if c.Service == service {
				lines.add("config", configKey(c), "%s", configText(c))
			}
			return nil
		},
		Suppression: func(s *suppression.Record) {
			if s.Service == service {
				lines.add("suppression", suppressionKey(s), "%s", suppressionText(s))
			}
		},
		Erasure: func(e *control.ErasureRecord) error {
			if mine(int64(e.Place)) {
				lines.add("erasure", e.Place, "%s", e.Body)
			}
			return nil
		},
		Filter: func(f *control.FilterRecord) error {
			if mine(int64(f.Number)) {
				lines.add("filter", f.Number, "%q", f.Text)
			}
			return nil
		},
		Subscriber: func(r *control.SubscriberRecord) error {
			if mine(int64(r.Place)) {
				people.add("subscriber", r.Place, "%s", subscriberText(r))
			}
			return after(&last, r.Place)
		},
		Subscription: func(r *control.SubscriptionRecord) error {
			if mine(int64(r.Place)) {
				wishes.add("subscription", r.Place, "%s", subscriptionText(r))
			}
			return after(&latest, r.Place)
		},
	})
	lines = slices.Concat(lines, people, wishes)
	slices.Sort(lines)
	return lines, err
}
