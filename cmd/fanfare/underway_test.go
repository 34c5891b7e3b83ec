package main

import (
	"strings"
	"testing"
	"time"

	"fanfare.dev/fanfare"
)

func TestAGaugeIsFullWhenAllIsDoneAndNotBefore(t *testing.T) {
	for _, test := range []struct {
		done, all int64
		want      string
	}{
		{0, 5, "[----------] 0 %"},
		{2, 5, "[####------] 40 %"},
		{999_999, 1_000_000, "[#########-] 99 %"},
		{5, 5, "[##########] 100 %"},
		{0, 0, ""},
	} {
		if got := gauge(test.done, test.all); got != test.want {
			t.Errorf("%d of %d: %s, want %s", test.done, test.all, got, test.want)
		}
	}
}

func TestTheEndOfABroadcastIsToldAsPeopleSayIt(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	for left, want := range map[time.Duration]string{
		-time.Second: "in 1s", 40 * time.Second: "in 40s", 200 * time.Second: "in 3m 20s", 5*time.Hour + 4*time.Minute: "in 5h 04m", 60 * time.Hour: "in 2 days",
	} {
		if got := ends(&fanfare.Broadcast{End: now.Add(left)}, now); got != want {
			t.Errorf("%v: %q, want %q", left, got, want)
		}
	}
	if got := ends(&fanfare.Broadcast{}, now); got != "" {
		t.Errorf("where nobody can tell: %q", got)
	}
}

func TestBroadcastsInProgressAreShownWithTheirRates(t *testing.T) {
	var out strings.Builder
	c := cli{out: &out, lookupEnv: func(string) (string, bool) { return "", false }}
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	c.printUnderway([]fanfare.Broadcast{
		{Event: "evt-20261120-1001", Service: "news", Topic: "story", Lane: "bulk", State: "running", Messages: 10_000,
			Counts: fanfare.Counts{fanfare.Accepted: 4100, fanfare.Pending: 5900}, PerSecond: 1234.5, End: now.Add(5 * time.Second)},
		{Event: "evt-20261120-2001", Service: "news", Topic: "story", Lane: "bulk", State: "paused", Messages: 10, PerSecond: 0.25},
	}, now)
	for _, want := range []string{"[####------] 41 %", "4,100", "10,000", "1,234/s", "in 5s", "paused", "0.2/s"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
}
