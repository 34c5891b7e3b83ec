package storetest_test

import (
	"encoding/json"
	"fmt"
	"time"

	"pgregory.net/rapid"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/store"
	"fanfare.dev/fanfare/internal/store/deliveries"
)

// daysPerCheck is how many days one sequence of operations has to itself, so
// that the databases need not be made anew for each.
const daysPerCheck = 2

// A kept record is one of a driver, that is opened again from time to time.
type keptRecord struct {
	name, place string
	db          store.Database
	*deliveries.Store
}

// trial is one sequence of operations on the records of all drivers and on
// models.
type trial struct {
	records []*keptRecord
	first   fanfare.Day
	days    [daysPerCheck]*dayModel
	events  [daysPerCheck][]*fanfare.MatchResult // all that were ever given, also of days that were removed
	stream  uint64
	clock   int // seconds since noon

	deferred map[fanfare.ManifestID]uint32 // the first position that was not deferred yet
}

func (tr *trial) now() time.Time { return noon.Add(time.Duration(tr.clock) * time.Second) }

// each does the same with all records, and wants the same of all: the code of
// an error, "" for none.
func (tr *trial) each(t *rapid.T, what string, want fanfare.Code, do func(s *deliveries.Store) error) {
	for _, r := range tr.records {
		err := do(r.Store)
		if got := codeOf(err); got != want {
			t.Fatalf("%s: %s gave %q (%v), want %q", r.name, what, got, err, want)
		}
	}
}

func codeOf(err error) fanfare.Code {
	if err == nil {
		return ""
	}
	return fanfare.CodeOf(err)
}

// pick chooses a day, and says what operations give that do not make one.
func (tr *trial) pick(t *rapid.T) (n int, of fanfare.Day, code fanfare.Code) {
	n = rapid.IntRange(0, daysPerCheck-1).Draw(t, "day")
	if tr.days[n] == nil {
		code = fanfare.NotFound
	}
	return n, tr.first + fanfare.Day(n), code
}

// made is the model of a day that an operation makes where it is not there.
func (tr *trial) made(n int) *dayModel {
	if tr.days[n] == nil {
		tr.days[n] = newDayModel(tr.first + fanfare.Day(n))
	}
	return tr.days[n]
}

// invent makes an event for people of four partitions.
func (tr *trial) invent(t *rapid.T, of fanfare.Day) *fanfare.MatchResult {
	tr.stream++
	received := of.Time().Add(12 * time.Hour)
	f := frozenEvent(tr.stream, received)
	f.Posted.Service = rapid.SampledFrom([]string{"news", "weather"}).Draw(t, "service")
	f.Posted.Event.ID = fmt.Sprint("story-", tr.stream/2)
	f.Posted.Event.Data = json.RawMessage(rapid.SampledFrom([]string{`{}`, `"\u0000"`, `{"é":"世界"}`, `[1,2,3]`}).Draw(t, "data"))
	if rapid.Bool().Draw(t, "direct") {
		f.Posted.Direct = &fanfare.Direct{Channel: 1, Reference: rapid.SampledFrom([]string{"", "order-1", "order-2"}).Draw(t, "reference")}
	}
	f.Hold = rapid.SampledFrom([]string{"", "", "it is large"}).Draw(t, "hold")
	for _, first := range rapid.SampledFrom([][]int{nil, {0}, {0, 2}, {1, 3}, {0, 1, 2, 3}}).Draw(t, "manifests") {
		m := fanfare.Manifest{ID: fanfare.NewManifestID(f.Posted.Seq, first), Sections: []fanfare.Section{{Channel: 1, Template: 1}}}
		for local := range uint32(4) {
			if local == 0 || rapid.Bool().Draw(t, "member") {
				place := fanfare.NewRowID(first, local)
				m.Sections[0].Members.Add(place, place)
			}
		}
		f.Manifests = append(f.Manifests, m)
		f.Messages += int64(m.Members())
		f.Matched += int64(m.Members())
	}
	return f
}

// manifest chooses one of a day that may have been given, or one that is none.
func (tr *trial) manifest(t *rapid.T, n int) fanfare.ManifestID {
	ids := []fanfare.ManifestID{fanfare.NewManifestID(fanfare.NewEventSeq(1<<40, 0), 1)}
	for _, f := range tr.events[n] {
		for i := range f.Manifests {
			ids = append(ids, f.Manifests[i].ID)
		}
	}
	return rapid.SampledFrom(ids).Draw(t, "manifest")
}
