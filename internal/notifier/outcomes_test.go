package notifier

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"fanfare.dev/fanfare"
)

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// of returns an event of a service.
func of(service string, seq int) *fanfare.AcceptedEvent {
	return &fanfare.AcceptedEvent{Service: service, Topic: "story", ReceivedAt: noon, Seq: fanfare.EventSeq(seq), Event: fanfare.Event{ID: fmt.Sprint("s-", seq), Source: "/" + service}}
}

// outcome returns the n-th outcome.
func outcome(n int, what *fanfare.AcceptedEvent, state fanfare.State, class fanfare.Class) Outcome {
	e := &fanfare.Entry{Delivery: fanfare.DeliveryRef{Day: fanfare.DayOf(noon), Manifest: fanfare.NewManifestID(what.Seq, 0), Position: uint32(n)},
		Attempt: 1, State: state, Class: class, At: noon.Add(time.Duration(n)), Code: 250}
	return Outcome{Entry: e, Name: fmt.Sprint("n-", n), Of: what, Channel: "email", Subscriber: fmt.Sprint("per-", n), Subscriptions: []string{"a", "b", "c", "d"}}
}

func dataOf(t *testing.T, p *fanfare.AcceptedEvent) (d Data) {
	t.Helper()
	if err := json.Unmarshal(p.Event.Data, &d); err != nil {
		t.Fatal(err)
	}
	return d
}

func TestEachOutcomeIsInOneEventWithThoseThatShareWhatConditionsAskFor(t *testing.T) {
	one, two, other := of("news", 4096), of("news", 8192), of("other", 12288)
	kinds := []struct {
		what  *fanfare.AcceptedEvent
		state fanfare.State
		class fanfare.Class
	}{{one, fanfare.Accepted, ""}, {one, fanfare.Failed, fanfare.ClassInvalid}, {one, fanfare.Failed, fanfare.ClassBlocked}, {two, fanfare.Accepted, ""}, {other, fanfare.Accepted, ""}}
	var all []Outcome
	for n := range 3000 {
		k := kinds[n%len(kinds)]
		all = append(all, outcome(n, k.what, k.state, k.class))
	}
	events, err := Events(all)
	if err != nil {
		t.Fatal(err)
	}
	if want := len(kinds) * 600 / maxTold; len(events) != want {
		t.Errorf("%d events, want %d", len(events), want)
	}
	again, _ := Events(all)
	ids, told := map[string]bool{}, map[string]int{}
	for i := range events {
		p := &events[i]
		d := dataOf(t, p)
		if ids[p.Event.ID] || p.Event.ID != again[i].Event.ID || string(p.Event.Data) != string(again[i].Event.Data) {
			t.Errorf("the event %s is not the same, or not the only one", p.Event.ID)
		}
		ids[p.Event.ID] = true
		if p.Event.Source != Source || p.Event.Type != "fanfare.delivery."+d.Kind || d.Count != len(d.Deliveries) || d.Count > maxTold {
			t.Errorf("event %+v", p.Event)
		}
		for _, one := range d.Deliveries {
			told[fmt.Sprint(p.Service, p.Topic, d.Kind, d.Class, d.ID, one.Delivery)]++
			if len(one.Subscriptions) != maxSubscriptions {
				t.Errorf("subscriptions %q", one.Subscriptions)
			}
		}
	}
	for i := range all {
		o := &all[i]
		topic, kind := o.ToldAs()
		if n := told[fmt.Sprint(o.Of.Service, topic, kind, o.Class, o.Of.Event.ID, o.Delivery)]; n != 1 {
			t.Errorf("%s of %s was told %d times", kind, o.Delivery, n)
		}
	}
}

func TestIntakeAcceptsTheLargestEvent(t *testing.T) {
	what := of("news", 4096)
	what.Event.ID, what.Event.Source = strings.Repeat("i", 1000), strings.Repeat("s", 1000)
	var all []Outcome
	for n := range maxTold {
		o := outcome(n, what, fanfare.Failed, fanfare.ClassInvalid)
		o.Subscriber, o.Text = strings.Repeat("x", 128), strings.Repeat("t", 512)
		o.Subscriptions = []string{strings.Repeat("a", 128), strings.Repeat("b", 128), strings.Repeat("c", 128)}
		all = append(all, o)
	}
	events, err := Events(all)
	if err != nil || len(events) != 1 || len(events[0].Event.Data) > 256<<10 {
		t.Errorf("%d events of %d bytes: %v", len(events), len(events[0].Event.Data), err)
	}
}

func TestAMessageIsNamedAsOneAndADigestByItsEventAlone(t *testing.T) {
	message, digest := of("news", 4096), of("news", 8192)
	message.Topic, message.Direct = "", &fanfare.Direct{Reference: "order-7"}
	digest.Topic, digest.Run = "", &fanfare.Run{}
	events, err := Events([]Outcome{outcome(1, message, fanfare.Accepted, ""), outcome(2, digest, fanfare.Expired, "")})
	if err != nil || len(events) != 2 {
		t.Fatal(events, err)
	}
	first, second := dataOf(t, &events[0]), dataOf(t, &events[1])
	if first.Event != "msg-20261120-1000" || first.Reference != "order-7" || first.ID != "" || first.Topic != "" {
		t.Errorf("the message is told as %+v", first)
	}
	if second.Event != "evt-20261120-2000" || second.ID != "" || events[1].Topic != fanfare.TopicFailures {
		t.Errorf("the digest is told as %+v", second)
	}
}

func TestAddressesAreHiddenInWhatWasAnswered(t *testing.T) {
	for text, want := range map[string]string{
		"":                                     "",
		"OK queued as 17":                      "OK queued as 17",
		"<ada@example.org>: no such user":      "[address] no such user",
		"to ada@example.org, and\tbob@x.y now": "to [address] and [address] now",
		strings.Repeat("é", 150):               strings.Repeat("é", 100),
		"x" + strings.Repeat("é", 150):         "x" + strings.Repeat("é", 99),
	} {
		if got := withoutAddresses(text); got != want {
			t.Errorf("%q is told as %q, want %q", text, got, want)
		}
	}
}

func TestNoAnswerOfANextHopMakesAnEventThatIntakeRefuses(t *testing.T) {
	what := of("news", 4096)
	what.Event.ID, what.Event.Source = strings.Repeat("<", 1024), strings.Repeat("&", 1024) // the longest
	for name, id := range map[string]string{"short": "p", "long": strings.Repeat("p", 128)} {
		var all []Outcome
		for n := range 1000 {
			o := outcome(n, what, fanfare.Failed, fanfare.ClassInvalid)
			o.Text, o.Subscriber, o.Subscriptions = strings.Repeat("<", 512), id, []string{id, id, id, id}
			all = append(all, o)
		}
		events, err := Events(all)
		if err != nil {
			t.Fatal(err)
		}
		told := 0
		for i := range events {
			if size := len(events[i].Event.Data); size > 256<<10 {
				t.Errorf("of %s ids, an event has %d bytes", name, size)
			}
			told += len(dataOf(t, &events[i]).Deliveries)
		}
		if told != len(all) {
			t.Errorf("of %s ids, %d were told of %d", name, told, len(all))
		}
	}
}
