package storetest_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/store/deliveries"
	"fanfare.dev/fanfare/internal/store/storetest"
)

// operations are what a trial does to the databases and to the model.
func (tr *trial) operations() map[string]func(*rapid.T) {
	ctx := context.Background()
	return map[string]func(*rapid.T){
		"freeze": func(t *rapid.T) {
			n, of, _ := tr.pick(t)
			var events []*fanfare.MatchResult
			for range rapid.IntRange(1, 3).Draw(t, "events") {
				f := tr.invent(t, of)
				if known := tr.events[n]; len(known) > 0 && rapid.IntRange(0, 2).Draw(t, "again") == 0 {
					again := *rapid.SampledFrom(known).Draw(t, "known")
					posted := *again.Posted // matched anew, with another result
					posted.Event.Subject = "again"
					again.Posted, again.Manifests, again.Messages = &posted, f.Manifests, f.Messages
					for i := range again.Manifests {
						again.Manifests[i].ID = fanfare.NewManifestID(posted.Seq, f.Manifests[i].ID.Partition())
					}
					f = &again
				}
				events = append(events, f)
			}
			want := make([]bool, len(events))
			day := tr.made(n)
			for i, f := range events {
				if want[i] = day.freeze(f, tr.now()); want[i] {
					tr.events[n] = append(tr.events[n], f)
				}
			}
			tr.each(t, "freeze", "", func(s *deliveries.Store) error {
				fresh, err := s.Freeze(ctx, events, tr.now())
				if err == nil && !slices.Equal(fresh, want) {
					err = fmt.Errorf("fresh are %v, want %v", fresh, want)
				}
				return err
			})
		},
		"record": func(t *rapid.T) {
			n, of, code := tr.pick(t)
			c := &fanfare.Commit{}
			for range rapid.SampledFrom([]int{0, 1, 2, 5, 9, 70}).Draw(t, "entries") {
				e := fanfare.Entry{
					Delivery: fanfare.DeliveryRef{Day: of, Manifest: tr.manifest(t, n), Position: uint32(rapid.IntRange(0, 4).Draw(t, "position"))},
					Attempt:  uint16(rapid.IntRange(1, 3).Draw(t, "attempt")),
					State:    rapid.SampledFrom([]fanfare.State{fanfare.Deferred, fanfare.Accepted, fanfare.Failed, fanfare.Expired}).Draw(t, "state"),
					Code:     rapid.IntRange(0, 599).Draw(t, "code"), At: tr.now(),
					Text: rapid.SampledFrom([]string{"", "250 ok", "naïve 世界", "'--"}).Draw(t, "text"), Relay: "relay:25", Address: "p@example.org",
				}
				if e.State == fanfare.Deferred {
					e.NextAt = tr.now().Add(time.Minute)
				}
				c.Entries = append(c.Entries, e)
			}
			for range rapid.IntRange(0, 5).Draw(t, "dues") {
				manifest := tr.manifest(t, n)
				first := tr.deferred[manifest] // a position waits for its next attempt once
				far := first + uint32(rapid.IntRange(2, 1<<20).Draw(t, "far"))
				tr.deferred[manifest] = far + 1
				c.Dues = append(c.Dues, fanfare.Due{
					At: tr.now().Add(time.Duration(rapid.IntRange(0, 5).Draw(t, "in")) * time.Second), Channel: uint16(rapid.IntRange(1, 65535).Draw(t, "channel")),
					Lane:  rapid.SampledFrom(fanfare.Lanes[:]).Draw(t, "lane"),
					Slice: fanfare.RecipientRange{Manifest: manifest, Attempt: uint16(rapid.IntRange(2, 3).Draw(t, "attempt")), Positions: []uint32{first, first + 1, far}},
				})
			}
			for range rapid.IntRange(0, 2).Draw(t, "completions") {
				counts := fanfare.Counts{}
				counts[fanfare.Accepted] = int64(rapid.IntRange(0, 9).Draw(t, "accepted"))
				var reasons fanfare.Reasons
				if n := rapid.IntRange(0, 2).Draw(t, "failed"); n > 0 {
					counts[fanfare.Failed] = int64(n)
					reasons = fanfare.Reasons{{State: "failed", Reason: "550 naïve '世界", Deliveries: int64(n)}}
				}
				c.Completions = append(c.Completions, fanfare.Completion{Seq: tr.manifest(t, n).Event(),
					Progress: fanfare.Progress{Counts: counts, Reasons: reasons, First: noon, Last: tr.now(), Completed: tr.now()}})
			}
			if code == "" {
				tr.days[n].record(c)
			}
			tr.each(t, "commit", code, func(s *deliveries.Store) error { return s.Commit(ctx, of, c) })
		},
		"switch": func(t *rapid.T) {
			n, of, code := tr.pick(t)
			var list []fanfare.Switch
			for range rapid.IntRange(1, 3).Draw(t, "switches") {
				sw := fanfare.Switch{Event: fanfare.EventRef{Day: of, Seq: tr.manifest(t, n).Event()}, Channel: uint16(rapid.IntRange(0, 1).Draw(t, "channel")),
					State: rapid.SampledFrom([]string{"", fanfare.SwitchPaused, fanfare.SwitchCancelled}).Draw(t, "state"), Reason: fmt.Sprint("at ", tr.clock)}
				list = append(list, sw)
				key := switchKey{sw.Event.Seq, sw.Channel}
				switch {
				case code != "":
				case sw.State == "":
					delete(tr.days[n].switches, key)
				default:
					tr.days[n].switches[key] = switchModel{sw.State, sw.Reason, tr.now()}
				}
			}
			tr.each(t, "switches", code, func(s *deliveries.Store) error { return s.SetSwitches(ctx, of, list, tr.now()) })
		},
		"control": func(t *rapid.T) {
			n, of, code := tr.pick(t)
			var list []fanfare.Control
			for range rapid.IntRange(1, 3).Draw(t, "controls") {
				c := fanfare.Control{Event: fanfare.EventRef{Day: of, Seq: tr.manifest(t, n).Event()},
					Name:  rapid.SampledFrom([]fanfare.ControlName{fanfare.ControlHold, fanfare.ControlApproved, fanfare.ControlRate}).Draw(t, "name"),
					Value: rapid.SampledFrom([]string{"", "100/s", "key-2"}).Draw(t, "value")}
				list = append(list, c)
				key := saidKey{c.Event.Seq, c.Name}
				switch {
				case code != "":
				case c.Value == "":
					delete(tr.days[n].controls, key)
				default:
					tr.days[n].controls[key] = saidModel{c.Value, tr.now()}
				}
			}
			tr.each(t, "controls", code, func(s *deliveries.Store) error { return s.SetControls(ctx, of, list, tr.now()) })
		},
		"hold": func(t *rapid.T) {
			n, of, code := tr.pick(t)
			batch := fanfare.Batch{Day: of, Channel: uint16(rapid.IntRange(1, 9).Draw(t, "channel")), Lane: fanfare.Bulk,
				Slices: []fanfare.RecipientRange{{Manifest: tr.manifest(t, n), To: 100, Attempt: 1}}}
			switch rapid.SampledFrom([]string{"hold", "rehold", "remove"}).Draw(t, "how") {
			case "hold":
				tr.made(n).held = append(tr.made(n).held, asJSON(batch))
				tr.each(t, "hold", "", func(s *deliveries.Store) error { return s.Hold(ctx, &batch) })
			case "rehold":
				if code == "" {
					tr.days[n].held = []string{asJSON(batch), asJSON(batch)}
				}
				tr.each(t, "rehold", code, func(s *deliveries.Store) error { return s.Rehold(ctx, of, []fanfare.Batch{batch, batch}) })
			case "remove":
				if code == "" {
					tr.days[n].held = tr.days[n].held[min(2, len(tr.days[n].held)):]
				}
				tr.each(t, "remove held", code, func(s *deliveries.Store) error {
					_, ids, err := s.Held(ctx, of)
					if err != nil {
						return err
					}
					return s.RemoveHeld(ctx, of, ids[:min(2, len(ids))])
				})
			}
		},
		"park": func(t *rapid.T) {
			n, of, code := tr.pick(t)
			how := rapid.SampledFrom([]string{"park", "unpark", "replace"}).Draw(t, "how")
			if how == "park" {
				p := fanfare.Parked{Kind: "batch", Reason: fmt.Sprint("reason ", tr.clock), Failures: 5, Members: rapid.IntRange(0, 9).Draw(t, "members"), At: tr.now()}
				seq, payload := tr.manifest(t, n).Event(), rapid.SliceOfN(rapid.Byte(), 0, 20).Draw(t, "payload")
				kept := p
				kept.Event = fanfare.EventRef{Day: of, Seq: seq}.String()
				tr.made(n).parked = append(tr.made(n).parked, parkedModel{kept, string(payload)})
				tr.each(t, "park", "", func(s *deliveries.Store) error { return s.Park(ctx, of, seq, p, payload) })
				return
			}
			if code != "" || len(tr.days[n].parked) == 0 {
				return
			}
			i := rapid.IntRange(0, len(tr.days[n].parked)-1).Draw(t, "which")
			if how == "unpark" {
				tr.days[n].parked = slices.Delete(tr.days[n].parked, i, i+1)
			} else {
				tr.days[n].parked[i].payload = "replaced"
			}
			tr.each(t, how, "", func(s *deliveries.Store) error {
				list, _, err := s.Parked(ctx, of)
				if err != nil || how == "unpark" {
					return errors.Join(err, s.Unpark(ctx, list[i].ID))
				}
				return s.ReplaceParked(ctx, list[i].ID, []byte("replaced"))
			})
		},
		"take due work": func(t *rapid.T) {
			n, of, code := tr.pick(t)
			tr.clock += rapid.IntRange(0, 3).Draw(t, "later")
			limit := rapid.IntRange(1, 4).Draw(t, "limit")
			if code == "" {
				taken := tr.days[n].ripe(tr.now(), limit)
				tr.days[n].due = slices.DeleteFunc(tr.days[n].due, func(d fanfare.Due) bool {
					return slices.ContainsFunc(taken, func(t fanfare.Due) bool { return dueKey(t) == dueKey(d) })
				})
			}
			tr.each(t, "take due work", code, func(s *deliveries.Store) error {
				dues, err := s.DueBy(ctx, of, tr.now(), limit)
				if err != nil {
					return err
				}
				return s.RemoveDue(ctx, of, dues)
			})
		},
		"hasten": func(t *rapid.T) {
			n, of, code := tr.pick(t)
			seq := tr.manifest(t, n).Event()
			if code == "" {
				tr.days[n].hasten(seq)
			}
			tr.each(t, "hasten", code, func(s *deliveries.Store) error { return s.HastenDue(ctx, fanfare.EventRef{Day: of, Seq: seq}) })
		},
		"forget": func(t *rapid.T) {
			n, of, code := tr.pick(t)
			ref := fanfare.DeliveryRef{Day: of, Manifest: tr.manifest(t, n), Position: uint32(rapid.IntRange(0, 4).Draw(t, "position"))}
			if code == "" {
				for i := range tr.days[n].attempts[ref] {
					e := &tr.days[n].attempts[ref][i]
					e.Text, e.Address = "", ""
				}
			}
			tr.each(t, "forget", code, func(s *deliveries.Store) error { return s.EraseAttempts(ctx, of, []fanfare.DeliveryRef{ref}) })
			f := (*frozenModel)(nil)
			if code == "" {
				f = tr.days[n].event(ref.Manifest.Event())
			}
			if f != nil {
				posted := *f.Posted
				posted.Event.Data = json.RawMessage(`{"forgotten":true}`)
				f.Posted = &posted
				tr.each(t, "replace an event", "", func(s *deliveries.Store) error { return s.ReplacePosted(ctx, &posted) })
			}
		},
		"index": func(t *rapid.T) {
			n, of, code := tr.pick(t)
			want := 0
			if code == "" {
				want = len(tr.days[n].frozen) - tr.days[n].indexed
				tr.days[n].indexed = len(tr.days[n].frozen)
			}
			tr.each(t, "index", code, func(s *deliveries.Store) error {
				covered, err := s.IndexHistory(ctx, of)
				if err == nil && covered != want {
					err = fmt.Errorf("%d events were indexed, want %d", covered, want)
				}
				if err != nil {
					return err
				}
				_, err = s.MergeHistory(ctx, of)
				return errors.Join(err, s.SweepHistory(ctx, of))
			})
		},
		"remove the day": func(t *rapid.T) {
			n, of, _ := tr.pick(t)
			if rapid.IntRange(0, 3).Draw(t, "really") > 0 {
				return
			}
			tr.days[n] = nil
			tr.each(t, "remove the day", "", func(s *deliveries.Store) error { return s.Remove(ctx, of) })
		},
		"ask": tr.ask,
	}
}

// ask compares what is told of all days.
func (tr *trial) ask(t *rapid.T) {
	for n, day := range tr.days {
		of := tr.first + fanfare.Day(n)
		q := &questions{partitions: []int{0, 2, 63}, service: rapid.SampledFrom([]string{"", "news"}).Draw(t, "service"), before: fanfare.NewEventSeq(1<<40, 0),
			after: fanfare.NewEventSeq(uint64(rapid.IntRange(0, 3).Draw(t, "after")), 0),
			from:  uint32(rapid.IntRange(0, 2).Draw(t, "from")), to: uint32(rapid.IntRange(2, 6).Draw(t, "to")), limit: rapid.IntRange(1, 5).Draw(t, "limit"), now: tr.now(),
			people: []fanfare.RowID{fanfare.NewRowID(0, 0), fanfare.NewRowID(rapid.IntRange(0, 3).Draw(t, "partition"), 1)},
			ids:    []string{"story-1", fmt.Sprint("story-", tr.stream/2)}, references: []string{"order-1"}}
		for _, f := range tr.events[n] {
			q.events = append(q.events, f.Posted.Seq)
		}
		for _, r := range tr.records {
			if days, err := r.Days(context.Background()); err != nil || slices.Contains(days, of) != (day != nil) {
				t.Fatalf("%s: the days are %v (%v); that %v is there should be %v", r.name, days, err, of, day != nil)
			}
			if day == nil {
				continue
			}
			got, err := answersOf(r.Store, of, q)
			if err != nil {
				t.Fatalf("%s: %v", r.name, err)
			}
			sameAnswers(t, r.name, got, day.answers(q))
		}
	}
}

// TestEveryDatabaseAnswersAsTheModel does the same random operations with the
// record of every driver and with a model in memory, opens the databases again
// in between, and compares all answers.
func TestEveryDatabaseAnswersAsTheModel(t *testing.T) {
	var records []*keptRecord
	for _, name := range slices.Sorted(maps.Keys(drivers)) {
		place := drivers[name](t)
		db := storetest.OpenAt(t, place)
		records = append(records, &keptRecord{name, place, db, deliveries.New(db)})
	}
	next := fanfare.DayOf(noon)
	rapid.Check(t, func(rt *rapid.T) {
		tr := &trial{records: records, first: next, deferred: map[fanfare.ManifestID]uint32{}}
		next += daysPerCheck
		rt.Repeat(tr.operations())
		for _, r := range records {
			if err := r.db.Close(); err != nil {
				rt.Fatal(err)
			}
			r.db = storetest.OpenAt(t, r.place)
			r.Store = deliveries.New(r.db)
		}
		tr.ask(rt)
		for n := range tr.days {
			tr.each(rt, "remove the day", "", func(s *deliveries.Store) error { return s.Remove(context.Background(), tr.first+fanfare.Day(n)) })
		}
	})
}
