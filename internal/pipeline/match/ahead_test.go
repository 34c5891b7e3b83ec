package match

import (
	"encoding/json"
	"log/slog"
	"testing"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/condition"
	"fanfare.dev/fanfare/internal/pipeline/match/verify"
)

// quarantine is the part of a store of which the tests need only the quarantine.
type quarantine struct {
	verify.Store
	list []condition.Quarantined
}

func (q quarantine) Quarantined() []condition.Quarantined { return q.list }

// Events are evaluated ahead only if the verifier need not check each of them, and an answer is used only then.
func TestEventsThatAreAllCheckedAreNotEvaluatedAhead(t *testing.T) {
	index := condition.New()
	key := condition.Key{Service: "ops", Topic: "load"}
	if err := index.Define(key, condition.Definition{}); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		share      verify.Share
		quarantine []condition.Quarantined
		ahead      bool
	}{
		"a sample":                       {share: verify.DefaultShare, ahead: true},
		"every event":                    {share: verify.Unlimited},
		"a condition in quarantine":      {share: verify.DefaultShare, quarantine: []condition.Quarantined{{Topic: 7, Filter: "event.n > 1"}}},
		"a quarantine of another topic":  {share: verify.DefaultShare, quarantine: []condition.Quarantined{{Topic: 8, Filter: "event.n > 1"}}, ahead: true},
		"only conditions in quarantine":  {share: 0, ahead: true},
		"none, with some in quarantine":  {share: 0, quarantine: []condition.Quarantined{{Topic: 7, Filter: "event.n > 1"}}},
		"every event and the quarantine": {share: verify.Unlimited, quarantine: []condition.Quarantined{{Topic: 7, Filter: "event.n > 1"}}},
	} {
		t.Run(name, func(t *testing.T) {
			m := &Matcher{Options: Options{Index: index, Verifier: verify.New(verify.Options{
				Index: index, Store: quarantine{list: c.quarantine}, Share: c.share, Meter: verify.ProcessMeter{Start: time.Now()}, Now: time.Now, Logger: slog.New(slog.DiscardHandler),
			})}}
			a := &answer{topic: verify.Topic{Key: key, Number: 7}, definition: index.DefinitionOf(key), hits: []fanfare.Hit{}, known: true}
			if got := len(m.chunks([]*answer{a})) == 1; got != c.ahead {
				t.Errorf("evaluated ahead: %v, want %v", got, c.ahead)
			}
			if got := m.usable(a, nil); got != c.ahead {
				t.Errorf("usable: %v, want %v", got, c.ahead)
			}
			if m.usable(a, json.RawMessage("1")) || m.usable(nil, nil) {
				t.Error("an answer for another previous event, or none, is used")
			}
		})
	}
}
