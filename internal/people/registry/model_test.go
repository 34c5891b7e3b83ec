package registry_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/condition"
	"fanfare.dev/fanfare/internal/people"
	"fanfare.dev/fanfare/internal/people/registry"
	"fanfare.dev/fanfare/internal/store/storetest"
)

// record is a subscription in the model.
type record struct {
	state                                                        string // that a put asks for
	id, clientID, topic, channel, to, filter, rule, params, data string
	cadence, slot                                                string
	zone                                                         string // that a put names
	active, paused                                               bool   // active: not ended
}

// become applies the state in a put.
func (r *record) become(state string) {
	if state != "" {
		r.paused = state == "paused"
	}
}

func (r *record) natural() string {
	return fmt.Sprint(r.topic, "|", r.channel, "|", r.to, "|", r.filter, "|", r.rule, "|", r.params)
}

// model is the simplest implementation of the contract of PutSubscriptions.
type model struct {
	all   []*record                   // in order of creation
	zones map[string]string           // by address
	was   map[*record]map[string]bool // slots that were left, and what waits there has not been carried over
	fresh map[*record]bool            // made by the call that is being made
}

// slotOf returns the name of a slot: a cadence, and the time zone if it matters.
func slotOf(cadence, zone string) string {
	switch text, own, _ := strings.Cut(cadence, " in "); {
	case cadence == "immediate":
		return ""
	case own != "":
		return text + " in " + own + ", " + own
	case strings.HasPrefix(cadence, "window") || zone == "":
		return cadence + ", UTC"
	default:
		return cadence + ", " + zone
	}
}

// wait applies the cadence in a put, in the time zone of the owner.
func (m *model) wait(r *record, cadence string) {
	if cadence != "" {
		r.cadence = cadence
	}
	left := r.slot
	if r.slot = slotOf(r.cadence, m.zones[r.to]); r.slot == left || m.fresh[r] {
		return
	}
	if m.was[r] == nil {
		m.was[r] = map[string]bool{}
	}
	delete(m.was[r], r.slot)
	if left != "" {
		m.was[r][left] = true
	}
}

// live moves all subscriptions of a person to another time zone.
func (m *model) live(to, zone string) {
	if zone == "" || m.zones[to] == zone {
		return
	}
	m.zones[to] = zone
	for _, r := range m.all {
		if r.to == to && r.active {
			m.wait(r, "")
		}
	}
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
	m.live(want.to, want.zone)
	want.zone = ""
	if want.clientID != "" {
		if old := m.byClientID(want.clientID); old != nil && old.active {
			if old.topic == want.topic && old.to == want.to {
				old.channel, old.filter, old.rule, old.params, old.data = want.channel, want.filter, want.rule, want.params, want.data
				old.become(want.state)
				m.wait(old, want.cadence)
				return old, false
			}
			want.paused = old.paused
			old.active = false
		}
	} else {
		for _, r := range m.all {
			if r.clientID == "" && r.active && r.natural() == want.natural() {
				r.data = want.data
				r.become(want.state)
				m.wait(r, want.cadence)
				return r, false
			}
		}
	}
	want.become(want.state)
	want.active, want.state = true, ""
	if want.cadence == "" {
		want.cadence = "immediate"
	}
	m.all = append(m.all, &want)
	m.fresh[&want] = true
	m.wait(&want, "")
	return &want, true
}

// spellings are different texts of the same params.
var spellings = []string{
	`{"min_mag":4.5,"place":"Alaska"}`,
	`{"place":"Alaska", "min_mag":4.50}`,
	`{ "min_mag": 45e-1, "place": "\u0041laska" }`,
}

func drawPut(t *rapid.T) (people.SubscriptionPut, record) {
	p := people.SubscriptionPut{
		ID:      rapid.SampledFrom([]string{"", "", "a", "b", "c"}).Draw(t, "id"),
		Topic:   rapid.SampledFrom([]string{"change", "change", "other"}).Draw(t, "topic"),
		Channel: rapid.SampledFrom([]string{"email", "print"}).Draw(t, "channel"),
		To:      rapid.SampledFrom([]string{"a@example.org", "b@example.org", "c@example.org", "d@example.org"}).Draw(t, "to"),
		Data:    rapid.SampledFrom([]json.RawMessage{nil, json.RawMessage(`{"n":1}`), json.RawMessage(`{"n":2}`)}).Draw(t, "data"),
	}
	p.Cadence = rapid.SampledFrom([]string{"", "", "", "immediate", "daily 08:00", "weekly monday 09:00 of state", "window 1m", "daily 08:00 in Asia/Tokyo"}).Draw(t, "cadence")
	p.TimeZone = rapid.SampledFrom([]string{"", "", "", "UTC", "Europe/London", "Asia/Tokyo"}).Draw(t, "zone")
	p.State = rapid.SampledFrom([]string{"", "", "", "", "paused", "active"}).Draw(t, "state")
	want := record{cadence: p.Cadence, zone: p.TimeZone, state: p.State, clientID: p.ID, topic: p.Topic, channel: p.Channel, to: p.To, data: string(p.Data)}
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

// TestRegistryDoesWhatTheModelDoes puts, updates, pauses, ends and restarts at random,
// individually and in groups, with and without colliding hashes, and then compares all
// results that can be read.
func TestRegistryDoesWhatTheModelDoes(t *testing.T) {
	for _, bits := range []int{64, 2} {
		t.Run(fmt.Sprintf("%d bits of hash", bits), func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) { checkModel(t, bits) })
		})
	}
}

func checkModel(t *rapid.T, bits int) {
	ctx := context.Background()
	place := storetest.Place(t)
	start := func() (*registry.Registry, *condition.Index) {
		index := condition.New()
		r, err := registry.OpenColliding(ctx, options(openStore(t, place), index), bits)
		if err != nil {
			t.Fatal(err)
		}
		return r, index
	}
	r, index := start()
	defer func() { r.Close() }()
	apply(t, r, waiting)
	m := model{zones: map[string]string{}, was: map[*record]map[string]bool{}, fresh: map[*record]bool{}}
	for range rapid.IntRange(1, 12).Draw(t, "steps") {
		switch rapid.IntRange(0, 6).Draw(t, "op") {
		case 0, 1, 2:
			n := rapid.IntRange(1, 6).Draw(t, "members")
			puts, wants := make([]people.SubscriptionPut, n), make([]record, n)
			for i := range puts {
				puts[i], wants[i] = drawPut(t)
			}
			results := make([]people.PutResult, n)
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
			clear(m.fresh)
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
			if len(m.all) == 0 {
				continue
			}
			one := m.all[rapid.IntRange(0, len(m.all)-1).Draw(t, "which")]
			if one.clientID != "" {
				one = m.byClientID(one.clientID)
			}
			set, paused := r.PauseSubscription, rapid.Bool().Draw(t, "pause")
			if !paused {
				set = r.ResumeSubscription
			}
			if err := set(ctx, "notify", one.id, nil); (err == nil) != one.active {
				t.Fatalf("pause %v of %+v: %v", paused, one, err)
			}
			if one.active {
				one.paused = paused
			}
		case 5:
			r.Close()
			r, index = start()
		case 6:
			m.carry(t, r)
		}
		compare(t, r, index, &m)
	}
}

// carry confirms some of the moves.
func (m *model) carry(t *rapid.T, r *registry.Registry) {
	moves := r.PendingMoves()
	if len(moves) == 0 {
		return
	}
	some := moves[:rapid.IntRange(1, len(moves)).Draw(t, "moves")]
	if err := r.ConfirmMoves(t.Context(), some); err != nil {
		t.Fatal(err)
	}
	for _, move := range some {
		for _, one := range m.all {
			if s, err := r.Subscription(t.Context(), "notify", one.id); err == nil && s.Place == move.Place && one.active {
				delete(m.was, one)
			}
		}
	}
}

// nameOf returns the name of a slot.
func nameOf(r *registry.Registry, number uint16) string {
	if number == 0 {
		return ""
	}
	s, known := r.Slot(number)
	if !known {
		return "unknown"
	}
	return s.Cadence.String() + ", " + s.Zone.String()
}

// compareSlots compares the pending moves and the slots in use.
func compareSlots(t *rapid.T, r *registry.Registry, m *model, places map[*record]fanfare.RowID) {
	want, used := map[fanfare.RowID]string{}, map[string]bool{}
	for _, one := range m.all {
		if one.active && len(m.was[one]) > 0 {
			want[places[one]] = fmt.Sprint(one.slot, " was ", slices.Sorted(maps.Keys(m.was[one])))
		}
		if one.active && !one.paused && one.slot != "" {
			used[one.slot] = true
		}
	}
	got, inUse := map[fanfare.RowID]string{}, map[string]bool{}
	for _, move := range r.PendingMoves() {
		var was []string
		for _, n := range move.PastSlots {
			was = append(was, nameOf(r, n))
		}
		slices.Sort(was)
		got[move.Place] = fmt.Sprint(nameOf(r, move.Slot), " was ", was)
	}
	for _, s := range r.Slots() {
		inUse[nameOf(r, s.Number)] = true
	}
	if !maps.Equal(got, want) || !maps.Equal(inUse, used) {
		t.Fatalf("moved %v, want %v; in use %v, want %v", got, want, inUse, used)
	}
}

func compare(t *rapid.T, r *registry.Registry, index *condition.Index, m *model) {
	ctx := context.Background()
	active, at := map[string]int{}, map[*record]fanfare.RowID{}
	for _, want := range m.all {
		if want.active && !want.paused {
			active[want.topic]++
		}
		if want.clientID != "" && m.byClientID(want.clientID) != want {
			continue // another has its id now
		}
		got, err := r.Subscription(ctx, "notify", want.id)
		if err != nil {
			t.Fatalf("%+v: %v", want, err)
		}
		at[want] = got.Place
		is := record{cadence: got.Cadence, slot: want.slot, id: got.ID, clientID: want.clientID, topic: got.Topic, channel: got.Channel, to: got.To, filter: got.Filter,
			rule: got.Rule, params: string(got.Params), data: string(got.Data), active: got.State != "ended", paused: want.paused}
		if got.State == "paused" != (want.active && want.paused) {
			t.Fatalf("%s is %s, the model says paused %v", want.id, got.State, want.paused)
		}
		if is != *want {
			t.Fatalf("kept %+v, want %+v", is, *want)
		}
		if live := want.active && !want.paused; r.Live(got.Place) != live {
			t.Fatalf("Live(%s) is %v", want.id, !live)
		}
		owner, err := findSubscriber(r, want.to)
		if err != nil || owner != got.Owner {
			t.Fatalf("subscriber of %s is %v (%v), of the subscription %v", want.to, owner, err, got.Owner)
		}
	}
	compareSlots(t, r, m, at)
	for _, topic := range []string{"change", "other"} {
		if n := index.Len(condition.Key{Service: "notify", Topic: topic}); n != active[topic] {
			t.Fatalf("the index has %d of %s, want %d", n, topic, active[topic])
		}
	}
	hits, err := index.Match(condition.Key{Service: "notify", Topic: "change"}, condition.Event{Data: json.RawMessage(`{"title":"Vancouver, Alaska","mag":5}`)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	var got, want []string
	var places []fanfare.RowID
	slots := map[fanfare.RowID]uint16{}
	for _, h := range hits {
		places, slots[h.Place] = append(places, h.Place), h.Slot
	}
	err = r.Subscriptions(ctx, places, func(s *people.SubscriptionRow) error {
		got = append(got, s.ID+" "+nameOf(r, s.Slot))
		if slots[s.Place] != s.Slot {
			t.Fatalf("the index has slot %d of %s, the row %d", slots[s.Place], s.ID, s.Slot)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range m.all {
		if w.active && !w.paused && w.topic == "change" && w.rule != "strong" && w.filter != "mag > 5.0" {
			want = append(want, w.id+" "+w.slot)
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Fatalf("matched %v, want %v", got, want)
	}
}
