package report

import (
	"testing"
)

func TestAGoalIsMissedBelowItsLeastAndAboveItsMost(t *testing.T) {
	r := Record{Value: 10, P99Millis: 60, Ratio: 0.9, RSSMiB: 100, GrowthMiB: 201, Refused: 0.002}
	for _, c := range []struct {
		goal   Goal
		missed bool
		text   string
	}{
		{Goal{Of: "value", AtLeast: 9}, false, "≥ 9.0 mails/s"},
		{Goal{Of: "value", AtMost: 9}, true, "≤ 9.0 mails/s"},
		{Goal{Of: "p99_ms", AtMost: 50}, true, "p99 ≤ 50.0 ms"},
		{Goal{Of: "ratio", AtLeast: 0.95}, true, "value/limit ≥ 0.95"},
		{Goal{Of: "rss_mb", AtMost: 400}, false, "memory ≤ 400 MiB"},
		{Goal{Of: "growth_mb", AtMost: 200}, true, "growth ≤ 200 MiB/day"},
		{Goal{Of: "refused", AtMost: 0.001}, true, "refused ≤ 0.1 %"},
	} {
		if c.goal.missed(&r) != c.missed || c.goal.text("mails/s") != c.text {
			t.Errorf("%+v: missed %v, %s", c.goal, c.goal.missed(&r), c.goal.text("mails/s"))
		}
	}
}
