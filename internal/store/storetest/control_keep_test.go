package storetest_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/catalog/audit"
	"fanfare.dev/fanfare/internal/people/suppression"
	"fanfare.dev/fanfare/internal/store"
	"fanfare.dev/fanfare/internal/store/control"
	"fanfare.dev/fanfare/internal/store/storetest"
)

// controlRows are what a store should have, in the order in which it is loaded.
type controlRows struct {
	seq           uint64
	config        []control.ConfigRecord
	suppressions  []suppression.Record
	erasures      []control.ErasureRecord
	filters       []control.FilterRecord
	subscribers   []control.SubscriberRecord
	subscriptions []control.SubscriptionRecord
	audit         []audit.Entry // the latest first
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
	var total int64
	var config, suppressions, erasures, filters, subscribers, subscriptions strings.Builder
	note := func(b *strings.Builder, record any) error { fmt.Fprintf(b, "%+v\n", record); return nil }
	err := c.Load(t.Context(), control.Loader{
		Total:        func(n int64) { total = n },
		ChangeSeq:    func(s uint64) { seq = s },
		Config:       func(r *control.ConfigRecord) error { return note(&config, *r) },
		Suppression:  func(r *suppression.Record) { _ = note(&suppressions, *r) },
		Erasure:      func(r *control.ErasureRecord) error { return note(&erasures, *r) },
		Filter:       func(r *control.FilterRecord) error { return note(&filters, *r) },
		Subscriber:   func(r *control.SubscriberRecord) error { return note(&subscribers, *r) },
		Subscription: func(r *control.SubscriptionRecord) error { return note(&subscriptions, *r) },
	})
	if err != nil || seq != want.seq {
		t.Errorf("%s: change sequence %d (%v), want %d", when, seq, err, want.seq)
	}
	if total < int64(len(want.subscriptions)) {
		t.Errorf("%s: at most %d subscriptions, and there are %d", when, total, len(want.subscriptions))
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
	all := control.Range{First: places[0], Last: places[len(places)-1]}
	for name, err := range map[string]error{
		"scan":   c.ScanSubscribers(t.Context(), all, func(r *control.SubscriberRecord) error { return note(&scanned[0], *r) }),
		"scans":  c.ScanSubscriptions(t.Context(), all, func(r *control.SubscriptionRecord) error { return note(&scanned[1], *r) }),
		"lookup": c.SubscriberRecords(t.Context(), places, func(r *control.SubscriberRecord) error { return note(&found[0], *r) }),
		"look":   c.SubscriptionRecords(t.Context(), places, func(r *control.SubscriptionRecord) error { return note(&found[1], *r) }),
	} {
		if err != nil {
			t.Errorf("%s: %s: %v", when, name, err)
		}
	}
	same("scan", scanned[0].String()+scanned[1].String(), recordLines(want.subscribers)+recordLines(want.subscriptions))
	same("lookup", found[0].String()+found[1].String(), recordLines(want.subscribers)+recordLines(want.subscriptions))

	var auditOf strings.Builder
	err = c.AuditEntries(t.Context(), 0, 1<<60, func(r *audit.Entry) bool { return note(&auditOf, *r) == nil })
	same("audit", auditOf.String(), recordLines(want.audit))
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

func firstBatch() (*control.Batch, *controlRows) {
	want := &controlRows{
		seq: 5,
		config: []control.ConfigRecord{
			{Kind: "service", Number: 2, Name: "weather", Body: []byte(`{"é":1}`)},
			{Kind: "channel", Number: 1, Service: 2, Name: "mail", Body: []byte(`{}`), Deleted: true},
			{Kind: "topic", Number: 1, Service: 2, Name: "storm", Body: []byte(`{"text":"a\u0000b"}`)},
		},
		suppressions: []suppression.Record{{Service: 2, Kind: 1, Hash: suppression.Hash{1, 0, 255}, Reason: "asked", At: 9}},
		erasures:     []control.ErasureRecord{{Place: full, Body: []byte(`{"who":"ada"}`)}},
		filters:      []control.FilterRecord{{Number: 1, Text: "mag > 3"}, {Number: 4, Text: "name == 'é'"}},
		subscribers: []control.SubscriberRecord{
			{Place: full, Service: 2, Kind: 1, ID: "ada", Address: "ada@example.org", Locale: "de-CH", TimeZone: "Europe/Zurich", Attributes: []byte(`{"b":1, "a":[2]}`)},
			{Place: bare, Service: 2, Kind: 3, Address: ""},
		},
		subscriptions: []control.SubscriptionRecord{
			{Place: full, Subscriber: bare, Topic: 1, Channel: 65535, ID: "hers", Filter: 4, Rule: 3, Params: []byte(`{"x":1}`), Data: []byte(`{"y":"z"}`), Title: "Hers", Description: "Of her", CreatedAt: 1e18, CreatedSeq: 5},
			{Place: bare, Subscriber: full, Topic: 1, Channel: 1, CreatedAt: 1e18, CreatedSeq: 5},
		},
		audit: []audit.Entry{
			{ID: 30, Actor: audit.Actor{KeyID: "key", KeyName: "ops", Request: "req"}, Operation: audit.Operation{Service: "weather", Action: "put", Kind: "subscriber", Name: "ada"}, Detail: []byte(`{"n":1}`)},
			{ID: 20, Operation: audit.Operation{Action: "create", Kind: "key"}, Detail: []byte{}},
			{ID: 10, Operation: audit.Operation{Action: "create", Kind: "service"}, Detail: []byte{}},
		},
	}
	b := &control.Batch{ChangeSeq: 5, At: 1e18, Config: want.config, Filters: want.filters, Suppressions: want.suppressions, Erasures: want.erasures}
	for i := range want.subscribers {
		p := want.subscribers[i].Place.Partition()
		b.Subscribers[p] = want.subscribers[i : i+1]
		b.Subscriptions[p] = want.subscriptions[i : i+1]
	}
	b.Audit = slices.Clone(want.audit)
	slices.Reverse(b.Audit)
	return b, want
}

func TestACommitStoresNewAndChangedRows(t *testing.T) {
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
		want.suppressions = []suppression.Record{{Service: 1, Kind: 2, Hash: suppression.Hash{7}, Reason: "bounced", At: 11}}
		want.subscribers[0] = control.SubscriberRecord{Place: full, Service: 2, Kind: 2, Address: "+41"}
		want.subscribers[1] = control.SubscriberRecord{Place: bare, Service: 2, Kind: 4, ID: "bob", Address: "b@example.org", Locale: "fr", TimeZone: "UTC",
			Attributes: []byte(`{}`), Subscriber: full, RowsJSON: []byte(`[1,2]`), Flags: 3}
		want.subscriptions[0] = control.SubscriptionRecord{Place: full, Subscriber: bare, Topic: 1, Channel: 2, CreatedAt: 1e18, CreatedSeq: 5, Ended: true, EndedAt: 12, EndedSeq: 6}
		want.subscriptions[1] = control.SubscriptionRecord{Place: bare, Subscriber: full, Topic: 1, Channel: 3, ID: "his", Filter: 1, Rule: 2, Params: []byte(`{"p":1}`), Data: []byte(`{}`), Title: "His",
			CreatedAt: 1e18, CreatedSeq: 5, Ended: true, EndedAt: 13, EndedSeq: 6, Reason: "asked"}
		want.audit[0].Name = "erased"
		err := c.Commit(&control.Batch{
			ChangeSeq: 6, At: 2e18, SecureDelete: true,
			Config:              []control.ConfigRecord{want.config[0], want.config[2]},
			SubscriberUpdates:   []*control.SubscriberRecord{&want.subscribers[0], &want.subscribers[1]},
			SubscriptionUpdates: []*control.SubscriptionRecord{&want.subscriptions[0], &want.subscriptions[1]},
			Suppressions:        []suppression.Record{lifted, want.suppressions[0]},
			Erasures:            []control.ErasureRecord{{Place: full}},
			ErasedFilters:       []uint32{4},
			RenamedAuditEntries: map[int64]string{30: "erased"},
		})
		if err != nil {
			t.Fatal(err)
		}
		checkControl(t, c, "after changes", want)

		// A second time of what is there once: the later one counts.
		want.suppressions[0].Reason, want.suppressions[0].At = "again", 14
		want.erasures = []control.ErasureRecord{{Place: bare, Body: []byte(`{"step":2}`)}}
		want.audit = append([]audit.Entry{{ID: 40, Operation: audit.Operation{Action: "end", Kind: "subscription"}, Detail: []byte{}}}, want.audit[:2]...)
		for _, body := range []string{`{"step":1}`, `{"step":2}`} {
			batch := control.Batch{Suppressions: want.suppressions, Erasures: []control.ErasureRecord{{Place: bare, Body: []byte(body)}}}
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
		var b control.Batch
		for id := range int64(200) {
			b.Audit = append(b.Audit, audit.Entry{ID: 10 * (id + 1)})
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
			err := c.AuditEntries(t.Context(), test.from, test.to, func(r *audit.Entry) bool {
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
			again := subscriberBatch(9, fanfare.NewRowID(0, 1), fanfare.NewRowID(40, 1))
			again.Config = []control.ConfigRecord{{Kind: "service", Number: 9, Name: "new", Body: []byte("{}")}}
			again.Audit = []audit.Entry{{ID: 99}, {ID: 20}} // which is there
			if err := c.Commit(again); err == nil {
				t.Fatal("it was kept")
			}
			checkControl(t, c, "after the error", want)
		}
	})
}

// A syncedDatabase counts the syncs.
type syncedDatabase struct {
	store.Database
	syncs int
}

func (d *syncedDatabase) Sync(context.Context) error { d.syncs++; return nil }

// Events and manifests refer to the numbers of configuration, so it survives a loss of power in durability relaxed too.
func TestConfigurationIsSynced(t *testing.T) {
	onEach(t, func(t *testing.T, place string) {
		d := &syncedDatabase{Database: storetest.OpenAt(t, place)}
		c := control.New(d)
		for want, b := range []*control.Batch{{Filters: []control.FilterRecord{{Number: 1, Text: "true"}}}, {Config: []control.ConfigRecord{{Kind: "key", Number: 1, Name: "a", Body: []byte("{}")}}}} {
			if err := c.Commit(b); err != nil {
				t.Fatal(err)
			}
			if d.syncs != want {
				t.Errorf("%d syncs, want %d", d.syncs, want)
			}
		}
	})
}
