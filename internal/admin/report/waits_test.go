package report

import (
	"testing"
	"time"

	"fanfare.dev/fanfare"
)

// spent are quotas by service/channel, or service.
type spent map[string]time.Time

func (s spent) Spent(service, channel string) time.Time {
	if at := s[service]; !at.IsZero() {
		return at
	}
	return s[service+"/"+channel]
}

func (s spent) AnySpent(string) bool { return len(s) > 0 }

func TestOpenDeliveriesNameTheirWait(t *testing.T) {
	ref := refOf(0, 7)
	for name, test := range map[string]struct {
		quotas  spent
		want    [4]string // by position: of channel 1 twice, then 2
		largest []string  // of the broadcast
	}{
		"put off":                    {nil, [4]string{"quiet_hours", "", "destination_suspended", ""}, []string{"quiet_hours", "destination_suspended"}},
		"a channel has had its day":  {spent{"news/channel-1": noon}, [4]string{"quiet_hours", "", "destination_suspended", ""}, []string{"quiet_hours", "destination_suspended", "daily_quota"}},
		"another one, of a pending":  {spent{"news/channel-2": noon}, [4]string{"quiet_hours", "", "destination_suspended", "daily_quota"}, []string{"quiet_hours", "destination_suspended", "daily_quota"}},
		"one that it does not go by": {spent{"news/channel-9": noon}, [4]string{"quiet_hours", "", "destination_suspended", ""}, []string{"quiet_hours", "destination_suspended"}},
		"the service":                {spent{"news": noon}, [4]string{"quiet_hours", "", "destination_suspended", "daily_quota"}, []string{"quiet_hours", "destination_suspended", "daily_quota"}},
	} {
		t.Run(name, func(t *testing.T) {
			traces, r := newTraces(map[fanfare.EventRef][]int{ref: {4}})
			manifest := r.manifests[ref][0].ID
			at := func(position uint32) fanfare.DeliveryRef {
				return fanfare.DeliveryRef{Day: ref.Day, Manifest: manifest, Position: position}
			}
			traces.Progress = counts{ref: {Counts: fanfare.Counts{fanfare.Pending: 2, fanfare.Deferred: 1, fanfare.Accepted: 1}}}
			if test.quotas != nil {
				traces.Quotas = test.quotas
			}
			r.attempts = []fanfare.Entry{{Delivery: at(1), Attempt: 1, State: fanfare.Accepted}, {Delivery: at(2), Attempt: 1, State: fanfare.Deferred}}
			r.waits = map[fanfare.DeliveryRef]fanfare.Waiting{
				at(0): {For: "quiet_hours", Until: noon},
				at(1): {For: "quiet_hours", Until: noon}, // it is settled by now
				at(2): {For: "destination_suspended", Until: noon, Destination: "a.example"},
			}
			list, _, err := traces.Deliveries(t.Context(), ref, "", 10)
			if err != nil || len(list) != 4 {
				t.Fatal(list, err)
			}
			for i, want := range test.want {
				got := ""
				if w := list[i].Waits; w != nil {
					got = w.For
				}
				if got != want {
					t.Errorf("delivery %d waits for %q, want %q", i, got, want)
				}
			}
			one, err := traces.Delivery(t.Context(), at(2))
			if err != nil || one.Waits == nil || one.Waits.Destination != "a.example" || !one.Waits.Until.Equal(noon) {
				t.Errorf("one is %+v, %v", one.Waits, err)
			}
			b, err := traces.Broadcast(t.Context(), ref)
			if err != nil {
				t.Fatal(err)
			}
			got := map[string]bool{}
			for _, w := range b.Waits {
				got[w.For] = true
			}
			for _, want := range test.largest {
				if !got[want] {
					t.Errorf("the broadcast does not wait for %s: %v", want, b.Waits)
				}
			}
			if got["daily_quota"] != (len(test.largest) == 3) {
				t.Errorf("the broadcast waits for %v", b.Waits)
			}
		})
	}
}
