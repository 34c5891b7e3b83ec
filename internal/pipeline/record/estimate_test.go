package record

import (
	"math"
	"testing"
	"testing/synctest"
	"time"

	"fanfare.dev/fanfare"
)

func TestRateMeterCoversTheLastSeconds(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fixture) {
		f.Begin(event, 1000, fanfare.Progress{})
		if rate, end := f.Estimate(event, nil); rate != 0 || !end.IsZero() {
			t.Errorf("before it began: %v/s until %v", rate, end)
		}
		at := 0
		settle := func(seconds, each int) {
			for range seconds {
				for range each {
					f.record(t, event, at, 1, fanfare.Accepted)
					at++
				}
				<-time.After(time.Second)
			}
			synctest.Wait()
		}
		about := func(when string, want float64, left time.Duration) {
			t.Helper()
			rate, end := f.Estimate(event, nil)
			if math.Abs(rate-want) > want/5 {
				t.Errorf("%s: %v/s, want about %v", when, rate, want)
			}
			if got := time.Until(end); !end.IsZero() != (left > 0) || left > 0 && (got < left*3/4-time.Second || got > left*5/4+time.Second) {
				t.Errorf("%s: %v remain, want about %v", when, got, left)
			}
		}
		settle(3, 20)
		about("while it is younger than the window", 20, 47*time.Second)
		settle(20, 20)
		about("later", 20, 27*time.Second)
		settle(20, 5)
		about("when it has become slower", 5, 88*time.Second)
		<-time.After(11 * time.Second)
		about("when it stands", 0, 0)
		settle(1, 440)
		if rate, end := f.Estimate(event, nil); rate != 0 || !end.IsZero() {
			t.Errorf("when it is over: %v/s until %v", rate, end)
		}
	})
}

func TestDeferredDeliveryIsNotSettled(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fixture) {
		f.Begin(event, 10, fanfare.Progress{})
		for i := range 5 {
			f.record(t, event, i, 1, fanfare.Deferred)
		}
		if rate, end := f.Estimate(event, nil); rate != 0 || !end.IsZero() {
			t.Errorf("%v/s until %v", rate, end)
		}
	})
}

func TestEstimateIncludesPostponedDeliveries(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fixture) {
		f.Begin(event, 1000, fanfare.Progress{})
		for at := range 200 {
			f.record(t, event, at, 1, fanfare.Accepted)
			if at%20 == 19 {
				<-time.After(time.Second)
			}
		}
		now := time.Now()
		hour := now.Add(time.Hour)
		for name, test := range map[string]struct {
			waits []fanfare.Waiting
			want  time.Duration // 0: no estimate
		}{
			"nothing": {nil, 40 * time.Second},
			"all that is left, and it leaves at once": {[]fanfare.Waiting{{For: "quiet_hours", Messages: 800, Until: hour, Last: hour}}, time.Hour + 40*time.Second},
			"some, which are done before the others":  {[]fanfare.Waiting{{For: "not_before", Messages: 400, Until: now, Last: now}}, 20 * time.Second},
			"some, spread over an hour":               {[]fanfare.Waiting{{For: "quiet_hours", Messages: 10, Until: now, Last: hour}}, time.Hour},
			"for what a destination takes":            {[]fanfare.Waiting{{For: "destination_limit", Messages: 10, Until: now, Last: now.Add(time.Minute)}}, time.Minute},
			"for a destination that is left alone":    {[]fanfare.Waiting{{For: "destination_suspended", Messages: 1, Until: hour, Last: hour}}, 0},
			"for the next day":                        {[]fanfare.Waiting{{For: fanfare.WaitDailyQuota, Until: hour}}, 0},
			"beyond what is told":                     {[]fanfare.Waiting{{For: "not_before", Messages: 1, Until: now.Add(2 * maxEstimate), Last: now.Add(2 * maxEstimate)}}, 0},
		} {
			rate, end := f.Estimate(event, test.waits)
			if rate == 0 {
				t.Fatalf("%s: no rate", name)
			}
			if got := end.Sub(now); test.want == 0 && !end.IsZero() || test.want > 0 && (got < test.want-5*time.Second || got > test.want+8*time.Second) {
				t.Errorf("%s: it ends in %v, want %v", name, got, test.want)
			}
		}
	})
}
