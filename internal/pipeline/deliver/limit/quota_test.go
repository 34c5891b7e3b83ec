package limit

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

// refuses counts a message now, and reports whether the quota refuses it.
func refuses(q *Quota, now time.Time) bool {
	taken, _ := q.Take(now, 1, false)
	return taken == 0
}

// TestNoDayExceedsItsQuotaAfterCrashes has a process that dies at random moments, refunds
// at random, and runs over several days.
func TestNoDayExceedsItsQuotaAfterCrashes(t *testing.T) {
	zone, err := time.LoadLocation("Europe/London")
	if err != nil {
		t.Fatal(err)
	}
	for seed := range uint64(40) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 9))
			most := int64(1 + random.IntN(5000))
			reserved := map[string]int64{} // outlives the process
			sent := map[string]int64{}
			now := time.Date(2026, 10, 24, 20, 0, 0, 0, zone) // the night in which clocks go back
			type asking struct {
				day   string
				block int64
			}
			var open []asking
			begin := func() *Quota {
				open = nil
				return NewQuota(most, zone, func(day string, block int64) { open = append(open, asking{day, block}) })
			}
			q := begin()
			for range 30_000 {
				if random.IntN(4) == 0 && len(open) > 0 {
					a := open[0]
					open = open[1:]
					granted := max(0, min(a.block, most-reserved[a.day]))
					reserved[a.day] += granted
					switch random.IntN(20) {
					case 0: // dies before the answer
						q = begin()
					case 1:
						reserved[a.day] -= granted
						q.Fail(a.day, now)
					default:
						q.Grant(a.day, a.block, granted)
					}
				}
				switch at := now; {
				case refuses(q, now):
					now = now.Add(time.Duration(random.IntN(20)) * time.Second)
				case random.IntN(10) == 0:
					now = now.Add(time.Duration(random.IntN(10)) * time.Second)
					q.Refund(at, 1)
				default:
					sent[now.Format(time.DateOnly)]++
					now = now.Add(time.Duration(random.IntN(60)) * time.Second)
				}
				switch random.IntN(2000) {
				case 0:
					q = begin() // dies
				case 1:
					day, left := q.Release() // stops
					reserved[day] -= left
					q = begin()
				}
			}
			for day, n := range sent {
				if n > most {
					t.Errorf("%d messages left on %s, its quota is %d", n, day, most)
				}
			}
			if len(sent) < 3 {
				t.Errorf("only %d days were seen", len(sent))
			}
		})
	}
}

func TestQuotaIsUsedUpAndRestartsAtLocalMidnight(t *testing.T) {
	zone, err := time.LoadLocation("Asia/Tokyo")
	if err != nil {
		t.Fatal(err)
	}
	reserved := map[string]int64{}
	var answers []func() // in progress
	var q *Quota
	q = NewQuota(250, zone, func(day string, block int64) {
		granted := min(block, 250-reserved[day])
		reserved[day] += granted
		answers = append(answers, func() { q.Grant(day, block, granted) })
	})
	now := time.Date(2026, 11, 20, 23, 30, 0, 0, zone)
	sent := 0
	for now.Before(time.Date(2026, 11, 21, 0, 0, 0, 0, zone)) {
		_, wait := q.Take(now, 1, false)
		if wait == 0 {
			sent++
		}
		if until := q.ExhaustedUntil(now); until.IsZero() != (wait <= quotaPoll) || wait > quotaPoll && !until.Equal(now.Add(wait)) {
			t.Fatalf("at %v it is spent until %v, and one that wants to leave waits for %v", now, until, wait)
		}
		if wait > quotaPoll { // exhausted: until when
			now = now.Add(wait)
			if until := q.ExhaustedUntil(now); !until.IsZero() {
				t.Errorf("on the next day it is spent until %v", until)
			}
			break
		}
		for _, arrives := range answers {
			arrives()
		}
		answers = nil
		now = now.Add(time.Millisecond)
	}
	if sent != 250 {
		t.Errorf("%d left of a quota of 250", sent)
	}
	if want := time.Date(2026, 11, 21, 0, 0, 0, 0, zone); !now.Equal(want) {
		t.Errorf("the next may leave at %v, want %v", now, want)
	}
}

// TestDayWithoutMidnightBeginsAtTheClockChange uses a zone whose clocks go from 24:00 to
// 01:00: each day has its quota, up to its last minute.
func TestDayWithoutMidnightBeginsAtTheClockChange(t *testing.T) {
	zone, err := time.LoadLocation("America/Santiago")
	if err != nil {
		t.Fatal(err)
	}
	asked := map[string]int{}
	var q *Quota
	var open []func()
	q = NewQuota(1000, zone, func(day string, block int64) {
		asked[day]++
		open = append(open, func() { q.Grant(day, block, block) })
	})
	sent := map[string]int{}
	for now := time.Date(2026, 9, 5, 21, 30, 0, 0, zone); now.Before(time.Date(2026, 9, 6, 3, 0, 0, 0, zone)); now = now.Add(time.Minute) {
		if !refuses(q, now) {
			sent[now.In(zone).Format("2006-01-02 15h")]++
		}
		for _, grant := range open {
			grant()
		}
		open = nil
	}
	for _, hour := range []string{"2026-09-05 22h", "2026-09-05 23h", "2026-09-06 01h", "2026-09-06 02h"} {
		if sent[hour] < 59 {
			t.Errorf("%s: %d of 60 left (%d blocks were asked for: %v)", hour, sent[hour], asked["2026-09-05"], sent)
		}
	}
}
