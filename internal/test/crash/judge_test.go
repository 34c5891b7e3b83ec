package crash

import (
	"slices"
	"strings"
	"testing"
	"time"

	"fanfare.dev/fanfare"
)

// second is a moment of the synthetic runs: 0 is their begin.
func second(n int) time.Time { return time.Unix(1_000_000+int64(n), 0) }

func put(sent, acked int) Change     { return Change{second(sent), second(acked), true, false} }
func exclude(sent, acked int) Change { return Change{second(sent), second(acked), false, false} }
func end(sent, acked int) Change     { return Change{second(sent), second(acked), false, true} }

func TestOnlyWhatWasAcknowledgedBeforeCountsForSure(t *testing.T) {
	for _, c := range []struct {
		name      string
		timeline  Timeline
		must, may bool // for an event from second 10 to second 20
	}{
		{"never subscribed", nil, false, false},
		{"subscribed before", Timeline{put(1, 2)}, true, true},
		{"subscribed while the event was sent", Timeline{put(9, 11)}, false, true},
		{"subscribed while it was delivered", Timeline{put(15, 16)}, false, true},
		{"subscribed behind it", Timeline{put(21, 22)}, false, false},
		{"ended before", Timeline{put(1, 2), end(3, 4)}, false, false},
		{"ended while it was sent", Timeline{put(1, 2), end(9, 11)}, false, true},
		{"ended while it was delivered", Timeline{put(1, 2), end(15, 30)}, false, true},
		{"ended behind it", Timeline{put(1, 2), end(21, 22)}, true, true},
		{"changed away before", Timeline{put(1, 2), exclude(3, 4)}, false, false},
		{"changed away and back before", Timeline{put(1, 2), exclude(3, 4), put(5, 6)}, true, true},
		{"put again, as it was, meanwhile", Timeline{put(1, 2), put(9, 15)}, true, true},
		{"ended and put again meanwhile", Timeline{put(1, 2), end(11, 12), put(13, 14)}, false, true},
	} {
		must, may := c.timeline.during(second(10), second(20))
		if must != c.must || may != c.may {
			t.Errorf("%s: must %t, may %t; want %t, %t", c.name, must, may, c.must, c.may)
		}
	}
}

func TestOneOfTwoSubscriptionsIsEnough(t *testing.T) {
	p := Person{{put(1, 2), end(3, 4)}, {put(1, 2)}}
	if must, _ := p.during(second(10), second(20)); !must {
		t.Error("the other subscription wants it")
	}
	if p.over(second(10)) {
		t.Error("the other subscription is not ended")
	}
}

func TestAnEndHoldsUntilSomethingElseIsSent(t *testing.T) {
	timeline := Timeline{put(1, 2), end(3, 5), put(8, 9)}
	for at, want := range map[int]bool{2: false, 4: false, 5: false, 6: true, 8: true, 9: false, 10: false} {
		if got := timeline.over(second(at)); got != want {
			t.Errorf("second %d: over %t, want %t", at, got, want)
		}
	}
}

// run is a small broadcast that went well: everything below spoils it.
func run() ([]Event, []Arrival) {
	audience := Audience{
		"a":    {{put(1, 2)}},
		"b":    {{put(1, 2)}},
		"no":   {{put(1, 2)}},
		"left": {{put(1, 2), end(11, 13)}},
		"gone": {{put(1, 2), end(3, 4)}},
	}
	events := []Event{{ID: "evt-1", Sent: second(10), Settled: second(20), Audience: audience}}
	arrivals := []Arrival{
		{second(12), "evt-1", "a", "m-a"},
		{second(12), "evt-1", "left", "m-left"},
		{second(14), "evt-1", "b", "m-b"},
	}
	return events, arrivals
}

func onlyNo(address string) (bool, error) { return address == "no", nil }

func TestTheJudgeFindsEachBrokenPromise(t *testing.T) {
	for _, c := range []struct {
		name  string
		spoil func([]Event, []Arrival) ([]Event, []Arrival)
		want  string // in the verdict
	}{
		{"nothing", func(e []Event, a []Arrival) ([]Event, []Arrival) { return e, a }, ""},
		{"a lost message", func(e []Event, a []Arrival) ([]Event, []Arrival) { return e, a[1:] }, "lost"},
		{"a lost event", func(e []Event, a []Arrival) ([]Event, []Arrival) {
			return append(e, Event{ID: "evt-2", Sent: second(30), Settled: second(31), Audience: e[0].Audience}), a
		}, "lost"},
		{"a message for one who left before", func(e []Event, a []Arrival) ([]Event, []Arrival) {
			return e, append(a, Arrival{second(3), "evt-1", "gone", "m-gone"})
		}, "sent to somebody who did not ask"},
		{"a message for a stranger", func(e []Event, a []Arrival) ([]Event, []Arrival) {
			return e, append(a, Arrival{second(12), "evt-1", "stranger", "m"})
		}, "sent to somebody who did not ask"},
		{"a message behind an acknowledged end", func(e []Event, a []Arrival) ([]Event, []Arrival) {
			a[1].At = second(14)
			return e, a
		}, "sent after an acknowledged end"},
		{"an event kept twice", func(e []Event, a []Arrival) ([]Event, []Arrival) {
			return e, append(a, Arrival{second(15), "evt-9", "a", "m"})
		}, "of an event that was never acknowledged"},
		{"a second message made anew", func(e []Event, a []Arrival) ([]Event, []Arrival) {
			return e, append(a, Arrival{second(15), "evt-1", "a", "m-other"})
		}, "again under another Message-ID"},
	} {
		events, arrivals := c.spoil(run())
		v, err := Judge(events, arrivals, onlyNo)
		if err != nil {
			t.Fatal(err)
		}
		broken := v.Broken()
		if _, found := broken[c.want]; c.want != "" && !found || c.want == "" && len(broken) > 0 || len(broken) > 1 && c.want != "sent to somebody who did not ask" {
			t.Errorf("%s: found %v, want %q", c.name, broken, c.want)
		}
	}
}

func TestDuplicatesAreCountedAndNotCondemned(t *testing.T) {
	events, arrivals := run()
	v, err := Judge(events, append(arrivals, arrivals[0], arrivals[0]), onlyNo)
	if err != nil || len(v.Broken()) > 0 || v.Duplicates != 2 || v.Expected != 3 || v.Refused != 1 || v.Either != 1 {
		t.Errorf("got %v, %v, broken %v", v, err, v.Broken())
	}
}

func account() (*fanfare.Broadcast, []fanfare.Delivery, map[string]bool) {
	b := &fanfare.Broadcast{Event: "evt-1", State: "completed", Messages: 4}
	b.Stages.Completed = second(20)
	b.Counts[fanfare.Accepted], b.Counts[fanfare.Failed], b.Counts[fanfare.Suppressed] = 2, 1, 1
	return b, []fanfare.Delivery{
		{Address: "a", State: "accepted"}, {Address: "b", State: "accepted"},
		{Address: "no", State: "failed"}, {Address: "left", State: "suppressed"},
	}, map[string]bool{"a": true, "b": true}
}

func TestTheAccountAgreesWithWhatArrived(t *testing.T) {
	for _, c := range []struct {
		name  string
		spoil func(*fanfare.Broadcast, []fanfare.Delivery, map[string]bool)
		want  string // in what is found; "" for nothing
	}{
		{"nothing", func(*fanfare.Broadcast, []fanfare.Delivery, map[string]bool) {}, ""},
		{"suppressed, though a kill let one out before", func(_ *fanfare.Broadcast, _ []fanfare.Delivery, r map[string]bool) { r["left"] = true }, ""},
		{"not completed", func(b *fanfare.Broadcast, _ []fanfare.Delivery, _ map[string]bool) { b.State = "running" }, "is running"},
		{"a member too many", func(b *fanfare.Broadcast, _ []fanfare.Delivery, _ map[string]bool) { b.Messages = 5 }, "5 messages"},
		{"accepted, and nobody got it", func(_ *fanfare.Broadcast, _ []fanfare.Delivery, r map[string]bool) { delete(r, "a") }, "to a is accepted"},
		{"failed, and somebody got it", func(_ *fanfare.Broadcast, _ []fanfare.Delivery, r map[string]bool) { r["no"] = true }, "to no is failed"},
		{"failed, and nobody refuses", func(b *fanfare.Broadcast, d []fanfare.Delivery, r map[string]bool) {
			d[0].State = "failed"
			delete(r, "a")
			b.Counts[fanfare.Accepted], b.Counts[fanfare.Failed] = 1, 2
		}, "whom nobody refuses"},
		{"counted otherwise than traced", func(b *fanfare.Broadcast, _ []fanfare.Delivery, _ map[string]bool) {
			b.Counts[fanfare.Accepted], b.Counts[fanfare.Expired] = 1, 1
		}, "are said to be"},
		{"traced twice", func(_ *fanfare.Broadcast, d []fanfare.Delivery, _ map[string]bool) { d[1] = d[0] }, "two deliveries to a"},
		{"got a message without a delivery", func(_ *fanfare.Broadcast, _ []fanfare.Delivery, r map[string]bool) { r["c"] = true }, "to c has no delivery"},
	} {
		b, deliveries, reached := account()
		c.spoil(b, deliveries, reached)
		wrong, err := Reconcile(b, deliveries, reached, onlyNo)
		if err != nil {
			t.Fatal(err)
		}
		found := slices.ContainsFunc(wrong, func(s string) bool { return strings.Contains(s, c.want) })
		if c.want == "" && len(wrong) > 0 || c.want != "" && !found {
			t.Errorf("%s: found %q, want %q", c.name, wrong, c.want)
		}
	}
}
