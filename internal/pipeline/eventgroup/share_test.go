package eventgroup

import (
	"encoding/json"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"fanfare.dev/fanfare"
)

func TestSharesPartitionAGroup(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		names := rapid.SampledFrom([]string{"news", "stocks", "a", "", `quo"ted`, "ünïcode", `back\slash`})
		topics := rapid.SampledFrom([]string{"", "story", "sto", `quo"te`, `","topic":"story`})
		separate := rapid.MapOf(topics, rapid.Bool()).Draw(t, "separate topics")
		isSeparate := func(service, topic string) bool { return separate[topic] && service != "stocks" }
		type key struct{ service, topic string }
		var posted []*fanfare.AcceptedEvent
		counts, first := map[key]int{}, []key{}
		keyOf := func(p *fanfare.AcceptedEvent) key {
			if p.Topic != "" && isSeparate(p.Service, p.Topic) {
				return key{p.Service, p.Topic}
			}
			return key{service: p.Service}
		}
		for range rapid.IntRange(0, 20).Draw(t, "events") {
			p := &fanfare.AcceptedEvent{Service: names.Draw(t, "service"), Topic: topics.Draw(t, "topic"), Event: fanfare.Event{Data: json.RawMessage(`{"service":"news"}`)}}
			if rapid.Bool().Draw(t, "had a sequence") {
				p.Seq = fanfare.NewEventSeq(rapid.Uint64Range(1, 9).Draw(t, "seq"), 3)
			}
			k := keyOf(p)
			if counts[k]++; counts[k] == 1 {
				first = append(first, k)
			}
			posted = append(posted, p)
		}
		group, err := Encode(posted...)
		if err != nil {
			t.Fatal(err)
		}
		whole, err := Decode(group, 77)
		if err != nil {
			t.Fatal(err)
		}
		shares, err := Shares(group, isSeparate)
		if err != nil || len(shares) != len(first) {
			t.Fatalf("shares are %+v (%v), want those of %v", shares, err, first)
		}
		for i, share := range shares {
			if k := (key{share.Service, share.Topic}); k != first[i] || share.Events != counts[k] {
				t.Fatalf("share %d is %+v, want %d of %q", i, share, counts[first[i]], first[i])
			}
			var want []*fanfare.AcceptedEvent
			for _, p := range whole {
				if keyOf(p) == first[i] {
					want = append(want, p)
				}
			}
			got, err := DecodeShare(&share, group, 77)
			if err != nil || !reflect.DeepEqual(got, want) {
				t.Fatalf("of %+v are %+v (%v), want %+v", share, got, err, want)
			}
		}
	})
}

// An apply may change which topics are separate between two events, and before a share is
// decoded: each event must still be in exactly one share.
func TestSharesStayDisjointWhenTopicsChange(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		topics := rapid.SampledFrom([]string{"story", "alert", "quote"})
		var posted []*fanfare.AcceptedEvent
		for i := range rapid.IntRange(1, 20).Draw(t, "events") {
			posted = append(posted, &fanfare.AcceptedEvent{Service: "news", Topic: topics.Draw(t, "topic"), Event: fanfare.Event{ID: string(rune('a' + i))}})
		}
		group, err := Encode(posted...)
		if err != nil {
			t.Fatal(err)
		}
		shares, err := Shares(group, func(string, string) bool { return rapid.Bool().Draw(t, "separate now") })
		if err != nil {
			t.Fatal(err)
		}
		seen := map[string]int{}
		for i := range shares {
			got, err := DecodeShare(&shares[i], group, 7)
			if err != nil || len(got) != shares[i].Events {
				t.Fatalf("share %+v has %d events (%v)", shares[i], len(got), err)
			}
			for _, p := range got {
				seen[p.Event.ID]++
			}
		}
		for _, p := range posted {
			if seen[p.Event.ID] != 1 {
				t.Fatalf("event %s of %s is in %d shares of %+v", p.Event.ID, p.Topic, seen[p.Event.ID], shares)
			}
		}
	})
}

func TestSharesRejectsADamagedGroup(t *testing.T) {
	for _, group := range []string{"\x05ab", "\x01{", "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"} {
		if shares, err := Shares([]byte(group), nil); err == nil {
			t.Errorf("%q has %+v", group, shares)
		}
	}
}
