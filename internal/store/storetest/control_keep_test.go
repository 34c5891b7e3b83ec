package storetest_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/registry"
	"fanfare.dev/fanfare/internal/store/control"
)

// controlRows are what a store should have, in the order in which it is loaded.
type controlRows struct {
	seq           uint64
	config        []registry.ConfigRecord
	suppressions  []registry.SuppressionRecord
	erasures      []registry.ErasureRecord
	filters       []registry.FilterRecord
	subscribers   []registry.SubscriberRecord
	subscriptions []registry.SubscriptionRecord
	audit         []registry.AuditRecord // the latest first
}

func recordLines[R any](records []R) string {
	var b strings.Builder
	for i := range records {
		fmt.Fprintf(&b, "%+v\n", records[i])
	}
	return b.String()
}

// checkControl loads everything, scans and looks up everything, and compares.
func checkControl(t *testing.T, c *control.Store, when string, want *controlRows) {
	t.Helper()
	// Nothing of a record may be kept: each is written down when it is visited.
	var seq uint64
	var config, suppressions, erasures, filters, subscribers, subscriptions strings.Builder
	note := func(b *strings.Builder, record any) error { fmt.Fprintf(b, "%+v\n", record); return nil }
	err := c.Load(t.Context(), registry.Loader{
		ChangeSeq:    func(s uint64) { seq = s },
		Config:       func(r *registry.ConfigRecord) error { return note(&config, *r) },
		Suppression:  func(r *registry.SuppressionRecord) { _ = note(&suppressions, *r) },
		Erasure:      func(r *registry.ErasureRecord) error { return note(&erasures, *r) },
		Filter:       func(r *registry.FilterRecord) error { return note(&filters, *r) },
		Subscriber:   func(r *registry.SubscriberRecord) error { return note(&subscribers, *r) },
		Subscription: func(r *registry.SubscriptionRecord) error { return note(&subscriptions, *r) },
	})
	if err != nil || seq != want.seq {
		t.Errorf("%s: change sequence %d (%v), want %d", when, seq, err, want.seq)
	}
	same := func(what, got, want string) {
		t.Helper()
		if got != want {
			t.Errorf("%s: %s\n%swant\n%s", when, what, got, want)
		}
	}
	same("config", config.String(), recordLines(want.config))
	same("suppressions", suppressions.String(), recordLines(want.suppressions))
	same("erasures", erasures.String(), recordLines(want.erasures))
	same("filters", filters.String(), recordLines(want.filters))
	same("subscribers", subscribers.String(), recordLines(want.subscribers))
	same("subscriptions", subscriptions.String(), recordLines(want.subscriptions))

	var places []fanfare.RowID
	for i := range want.subscribers {
		places = append(places, want.subscribers[i].Place)
	}
	var scanned, found [2]strings.Builder
	all := registry.Range{First: places[0], Last: places[len(places)-1]}
	for name, err := range map[string]error{
		"scan":   c.ScanSubscribers(t.Context(), all, func(r *registry.SubscriberRecord) error { return note(&scanned[0], *r) }),
		"scans":  c.ScanSubscriptions(t.Context(), all, func(r *registry.SubscriptionRecord) error { return note(&scanned[1], *r) }),
		"lookup": c.SubscriberRecords(t.Context(), places, func(r *registry.SubscriberRecord) error { return note(&found[0], *r) }),
		"look":   c.SubscriptionRecords(t.Context(), places, func(r *registry.SubscriptionRecord) error { return note(&found[1], *r) }),
	} {
		if err != nil {
			t.Errorf("%s: %s: %v", when, name, err)
		}
	}
	same("scan", scanned[0].String()+scanned[1].String(), recordLines(want.subscribers)+recordLines(want.subscriptions))
	same("lookup", found[0].String()+found[1].String(), recordLines(want.subscribers)+recordLines(want.subscriptions))

	var audit strings.Builder
	err = c.AuditRecords(t.Context(), 0, 1<<60, func(r *registry.AuditRecord) bool { return note(&audit, *r) == nil })
	same("audit", audit.String(), recordLines(want.audit))
	oldest, latest, boundsErr := c.AuditBounds(t.Context())
	if err := errors.Join(err, boundsErr); err != nil {
		t.Errorf("%s: audit: %v", when, err)
	}
	if n := len(want.audit); n > 0 && (oldest != want.audit[n-1].ID || latest != want.audit[0].ID) || n == 0 && oldest+latest != 0 {
		t.Errorf("%s: the audit reaches from %d to %d", when, oldest, latest)
	}
}

// full and bare are the places of rows in which everything is set, and nothing
// that may be left out.
var full, bare = fanfare.NewRowID(3, 7), fanfare.NewRowID(63, 1<<26-1)

func firstBatch() (*registry.Batch, *controlRows) {
	want := &controlRows{
		seq: 5,
		config: []registry.ConfigRecord{
			{Kind: "service", Number: 2, Name: "weather", Body: []byte(`{"é":1}`)},
			{Kind: "channel", Number: 1, Service: 2, Name: "mail", Body: []byte(`{}`), Deleted: true},
			{Kind: "topic", Number: 1, Service: 2, Name: "storm", Body: []byte(`{"text":"a\u0000b"}`)},
		},
		suppressions: []registry.SuppressionRecord{{Service: 2, Kind: 1, Hash: registry.SuppressionHash{1, 0, 255}, Reason: "asked", At: 9}},
		erasures:     []registry.ErasureRecord{{Place: full, Body: []byte(`{"who":"ada"}`)}},
		filters:      []registry.FilterRecord{{Number: 1, Text: "mag > 3"}, {Number: 4, Text: "name == 'é'"}},
		subscribers: []registry.SubscriberRecord{
			{Place: full, Service: 2, Kind: 1, ID: "ada", Address: "ada@example.org", Locale: "de-CH", TimeZone: "Europe/Zurich", Attributes: []byte(`{"b":1, "a":[2]}`)},
			{Place: bare, Service: 2, Kind: 3, Address: ""},
		},
		subscriptions: []registry.SubscriptionRecord{
			{Place: full, Subscriber: bare, Topic: 1, Channel: 65535, ID: "hers", Filter: 4, Rule: 3, Params: []byte(`{"x":1}`), Data: []byte(`{"y":"z"}`), CreatedAt: 1e18, CreatedSeq: 5},
			{Place: bare, Subscriber: full, Topic: 1, Channel: 1, CreatedAt: 1e18, CreatedSeq: 5},
		},
		audit: []registry.AuditRecord{
			{ID: 30, Actor: registry.Actor{KeyID: "key", KeyName: "ops", Request: "req"}, Deed: registry.Deed{Service: "weather", Action: "put", Kind: "subscriber", Name: "ada"}, Detail: []byte(`{"n":1}`)},
			{ID: 20, Deed: registry.Deed{Action: "create", Kind: "key"}, Detail: []byte{}},
			{ID: 10, Deed: registry.Deed{Action: "create", Kind: "service"}, Detail: []byte{}},
		},
	}
	b := &registry.Batch{ChangeSeq: 5, At: 1e18, Config: want.config, Filters: want.filters, Suppressions: want.suppressions, Erasures: want.erasures}
	for i := range want.subscribers {
		p := want.subscribers[i].Place.Partition()
		b.Subscribers[p] = want.subscribers[i : i+1]
		b.Subscriptions[p] = want.subscriptions[i : i+1]
	}
	b.Audit = slices.Clone(want.audit)
	slices.Reverse(b.Audit)
	return b, want
}

func TestWhatACommitKeepsIsThereAndWhatItChangesIsChanged(t *testing.T) {
	onEachControl(t, func(t *testing.T, c *control.Store) {
		b, want := firstBatch()
		if err := c.Commit(b); err != nil {
			t.Fatal(err)
		}
		checkControl(t, c, "at first", want)

		// Everything that can be set is set, or emptied.
		want.seq = 6
		want.config[0].Name, want.config[0].Body = "climate", []byte(`{"new":true}`)
		want.config[2].Deleted = true
		want.filters[1].Text = ""
		want.erasures = nil
		lifted := want.suppressions[0]
		lifted.Lifted = true
		want.suppressions = []registry.SuppressionRecord{{Service: 1, Kind: 2, Hash: registry.SuppressionHash{7}, Reason: "bounced", At: 11}}
		want.subscribers[0] = registry.SubscriberRecord{Place: full, Service: 2, Kind: 2, Address: "+41"}
		want.subscribers[1] = registry.SubscriberRecord{Place: bare, Service: 2, Kind: 4, ID: "bob", Address: "b@example.org", Locale: "fr", TimeZone: "UTC",
			Attributes: []byte(`{}`), Subscriber: full, Parts: []byte(`[1,2]`), Flags: 3}
		want.subscriptions[0] = registry.SubscriptionRecord{Place: full, Subscriber: bare, Topic: 1, Channel: 2, CreatedAt: 1e18, CreatedSeq: 5, Ended: true, EndedAt: 12, EndedSeq: 6}
		want.subscriptions[1] = registry.SubscriptionRecord{Place: bare, Subscriber: full, Topic: 1, Channel: 3, ID: "his", Filter: 1, Rule: 2, Params: []byte(`{"p":1}`), Data: []byte(`{}`),
			CreatedAt: 1e18, CreatedSeq: 5, Ended: true, EndedAt: 13, EndedSeq: 6, Reason: "asked"}
		want.audit[0].Name = "erased"
		err := c.Commit(&registry.Batch{
			ChangeSeq: 6, At: 2e18, Securely: true,
			Config:              []registry.ConfigRecord{want.config[0], want.config[2]},
			SubscriberUpdates:   []*registry.SubscriberRecord{&want.subscribers[0], &want.subscribers[1]},
			SubscriptionUpdates: []*registry.SubscriptionRecord{&want.subscriptions[0], &want.subscriptions[1]},
			Suppressions:        []registry.SuppressionRecord{lifted, want.suppressions[0]},
			Erasures:            []registry.ErasureRecord{{Place: full}},
			EmptyFilters:        []uint32{4},
			AuditNames:          map[int64]string{30: "erased"},
		})
		if err != nil {
			t.Fatal(err)
		}
		checkControl(t, c, "after changes", want)

		// A second time of what is there once: the later one counts.
		want.suppressions[0].Reason, want.suppressions[0].At = "again", 14
		want.erasures = []registry.ErasureRecord{{Place: bare, Body: []byte(`{"step":2}`)}}
		want.audit = append([]registry.AuditRecord{{ID: 40, Deed: registry.Deed{Action: "end", Kind: "subscription"}, Detail: []byte{}}}, want.audit[:2]...)
		for _, body := range []string{`{"step":1}`, `{"step":2}`} {
			batch := registry.Batch{Suppressions: want.suppressions, Erasures: []registry.ErasureRecord{{Place: bare, Body: []byte(body)}}}
			if body == `{"step":2}` {
				batch.Audit, batch.AuditBefore = want.audit[:1], 20
			}
			if err := c.Commit(&batch); err != nil {
				t.Fatal(err)
			}
		}
		checkControl(t, c, "after repetitions, with no change of subscriptions", want)
	})
}

func TestTheAuditIsReadWithinItsBoundsUntilTheVisitorHasEnough(t *testing.T) {
	onEachControl(t, func(t *testing.T, c *control.Store) {
		var b registry.Batch
		for id := range int64(200) {
			b.Audit = append(b.Audit, registry.AuditRecord{ID: 10 * (id + 1)})
		}
		if err := c.Commit(&b); err != nil {
			t.Fatal(err)
		}
		for _, test := range []struct {
			from, to int64
			enough   int
			want     string
		}{
			{95, 130, 9, "[130 120 110 100]"},
			{100, 130, 2, "[130 120]"},
			{101, 109, 9, "[]"},
		} {
			ids := []int64{}
			err := c.AuditRecords(t.Context(), test.from, test.to, func(r *registry.AuditRecord) bool {
				ids = append(ids, r.ID)
				return len(ids) < test.enough
			})
			if got := fmt.Sprint(ids); err != nil || got != test.want {
				t.Errorf("from %d to %d, at most %d: %s (%v), want %s", test.from, test.to, test.enough, got, err, test.want)
			}
		}
	})
}

func TestABatchThatIsRefusedInTheMiddleKeepsNothing(t *testing.T) {
	onEachControl(t, func(t *testing.T, c *control.Store) {
		b, want := firstBatch()
		if err := c.Commit(b); err != nil {
			t.Fatal(err)
		}
		for range 3 {
			again := people(9, fanfare.NewRowID(0, 1), fanfare.NewRowID(40, 1))
			again.Config = []registry.ConfigRecord{{Kind: "service", Number: 9, Name: "new", Body: []byte("{}")}}
			again.Audit = []registry.AuditRecord{{ID: 99}, {ID: 20}} // which is there
			if err := c.Commit(again); err == nil {
				t.Fatal("it was kept")
			}
			checkControl(t, c, "after the error", want)
		}
	})
}
