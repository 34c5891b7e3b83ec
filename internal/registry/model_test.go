package registry_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/match"
	"fanfare.dev/fanfare/internal/registry"
	"fanfare.dev/fanfare/internal/store/sqlite"
)

// record is what the model knows of one subscription.
type record struct {
	id, clientID, topic, channel, to, filter, rule, params, data string
	active                                                       bool
}

func (r *record) natural() string {
	return fmt.Sprint(r.topic, "|", r.channel, "|", r.to, "|", r.filter, "|", r.rule, "|", r.params)
}

// model is the simplest thing that keeps the promises of PutSubscriptions.
type model struct {
	all []*record // in order of creation
}

func (m *model) byClientID(id string) *record {
	for _, r := range slices.Backward(m.all) {
		if r.clientID == id {
			return r
		}
	}
	return nil
}

func (m *model) put(want record) (is *record, created bool) {
	if want.clientID != "" {
		if old := m.byClientID(want.clientID); old != nil && old.active {
			if old.topic == want.topic && old.to == want.to {
				old.channel, old.filter, old.rule, old.params, old.data = want.channel, want.filter, want.rule, want.params, want.data
				return old, false
			}
			old.active = false
		}
	} else {
		for _, r := range m.all {
			if r.clientID == "" && r.active && r.natural() == want.natural() {
				r.data = want.data
				return r, false
			}
		}
	}
	want.active = true
	m.all = append(m.all, &want)
	return &want, true
}

// spellings of the same params.
var spellings = []string{
	`{"min_mag":4.5,"place":"Alaska"}`,
	`{"place":"Alaska", "min_mag":4.50}`,
	`{ "min_mag": 45e-1, "place": "\u0041laska" }`,
}

func drawPut(t *rapid.T) (registry.Put, record) {
	p := registry.Put{
		ID:      rapid.SampledFrom([]string{"", "", "a", "b", "c"}).Draw(t, "id"),
		Topic:   rapid.SampledFrom([]string{"change", "change", "other"}).Draw(t, "topic"),
		Channel: rapid.SampledFrom([]string{"email", "print"}).Draw(t, "channel"),
		To:      rapid.SampledFrom([]string{"a@example.org", "b@example.org", "c@example.org", "d@example.org"}).Draw(t, "to"),
		Data:    rapid.SampledFrom([]json.RawMessage{nil, json.RawMessage(`{"n":1}`), json.RawMessage(`{"n":2}`)}).Draw(t, "data"),
	}
	want := record{clientID: p.ID, topic: p.Topic, channel: p.Channel, to: p.To, data: string(p.Data)}
	if p.Topic == "change" {
		switch rapid.IntRange(0, 3).Draw(t, "condition") {
		case 0:
			p.Filter = rapid.SampledFrom([]string{sharedFilter, "mag > 5.0"}).Draw(t, "filter")
			want.filter = p.Filter
		case 1:
			p.Rule, p.Params = "near", json.RawMessage(rapid.SampledFrom(spellings).Draw(t, "params"))
			want.rule, want.params = "near", spellings[0]
		case 2:
			p.Rule = "strong"
			want.rule = "strong"
		}
	}
	return p, want
}

// TestRegistryDoesWhatTheModelDoes puts, updates, ends and restarts at random,
// alone and in groups, with and without colliding hashes, and compares
// everything that can be asked afterwards.
func TestRegistryDoesWhatTheModelDoes(t *testing.T) {
	for _, bits := range []int{64, 2} {
		t.Run(fmt.Sprintf("%d bits of hash", bits), func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) { checkModel(t, bits) })
		})
	}
}

func checkModel(t *rapid.T, bits int) {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "registry")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	start := func() (*registry.Registry, *match.Index) {
		index := match.New()
		r, err := registry.OpenColliding(ctx, options(openStore(t, dir, sqlite.Relaxed), index), bits)
		if err != nil {
			t.Fatal(err)
		}
		return r, index
	}
	r, index := start()
	defer func() { r.Close() }()
	apply(t, r, weather)
	var m model
	for range rapid.IntRange(1, 12).Draw(t, "steps") {
		switch rapid.IntRange(0, 4).Draw(t, "op") {
		case 0, 1, 2:
			n := rapid.IntRange(1, 6).Draw(t, "members")
			puts, wants := make([]registry.Put, n), make([]record, n)
			for i := range puts {
				puts[i], wants[i] = drawPut(t)
			}
			results := make([]registry.PutResult, n)
			if err := r.PutSubscriptions(ctx, "notify", puts, results); err != nil {
				t.Fatal(err)
			}
			for i, res := range results {
				is, created := m.put(wants[i])
				if res.Err != nil || res.Created != created {
					t.Fatalf("put %+v: %+v, want created %v", puts[i], res, created)
				}
				if created {
					is.id = res.ID
				} else if res.ID != is.id {
					t.Fatalf("put %+v: id %s, want %s", puts[i], res.ID, is.id)
				}
			}
		case 3:
			if len(m.all) == 0 {
				continue
			}
			one := m.all[rapid.IntRange(0, len(m.all)-1).Draw(t, "which")]
			if one.clientID != "" {
				one = m.byClientID(one.clientID)
			}
			if err := r.EndSubscription(ctx, "notify", one.id, "asked"); err != nil {
				t.Fatal(err)
			}
			one.active = false
		case 4:
			if err := r.Close(); err != nil {
				t.Fatal(err)
			}
			r, index = start()
		}
		compare(t, r, index, &m)
	}
}

func compare(t *rapid.T, r *registry.Registry, index *match.Index, m *model) {
	ctx := context.Background()
	active := map[string]int{}
	for _, want := range m.all {
		if want.active {
			active[want.topic]++
		}
		if want.clientID != "" && m.byClientID(want.clientID) != want {
			continue // another has its id now
		}
		got, err := r.Subscription(ctx, "notify", want.id)
		if err != nil {
			t.Fatalf("%+v: %v", want, err)
		}
		is := record{id: got.ID, clientID: want.clientID, topic: got.Topic, channel: got.Channel, to: got.To, filter: got.Filter,
			rule: got.Rule, params: string(got.Params), data: string(got.Data), active: got.State == "active"}
		if is != *want {
			t.Fatalf("kept %+v, want %+v", is, *want)
		}
		if r.Live(got.Place) != want.active {
			t.Fatalf("Live(%s) is %v", want.id, !want.active)
		}
		owner, err := findSubscriber(r, want.to)
		if err != nil || owner != got.Owner {
			t.Fatalf("subscriber of %s is %v (%v), of the subscription %v", want.to, owner, err, got.Owner)
		}
	}
	for _, topic := range []string{"change", "other"} {
		if n := index.Len(match.Key{Service: "notify", Topic: topic}); n != active[topic] {
			t.Fatalf("the index has %d of %s, want %d", n, topic, active[topic])
		}
	}
	hits, err := index.Match(match.Key{Service: "notify", Topic: "change"}, json.RawMessage(`{"title":"Vancouver, Alaska","mag":5}`), nil)
	if err != nil {
		t.Fatal(err)
	}
	var got, want []string
	var places []fanfare.Place
	for _, h := range hits {
		places = append(places, h.Place)
	}
	err = r.Subscriptions(ctx, places, func(s *registry.SubscriptionRow) error {
		got = append(got, s.ID)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range m.all {
		if w.active && w.topic == "change" && w.rule != "strong" && w.filter != "mag > 5.0" {
			want = append(want, w.id)
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Fatalf("matched %v, want %v", got, want)
	}
}
