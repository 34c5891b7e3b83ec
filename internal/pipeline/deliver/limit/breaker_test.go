package limit

import (
	"testing"
	"time"
)

func TestBreakerOpensAfterConsecutiveFailuresOnly(t *testing.T) {
	for _, c := range []struct {
		name     string
		answers  string // f: failed, w: worked
		underway int
		open     bool
	}{
		{"a single error", "f", 0, false},
		{"four in a row", "ffff", 0, false},
		{"five in a row", "fffff", 0, true},
		{"a success between", "ffffwffff", 0, false},
		{"ten at once, of which six are back", "ffffff", 10, false},
		{"twenty of ten at once", "ffffffffffffffffffff", 10, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			var b Breaker
			for _, a := range c.answers {
				if a == 'f' {
					b.Failed(start, false, c.underway, 0)
				} else {
					b.Succeeded(start, false)
				}
			}
			if _, open := b.Open(start); open != c.open {
				t.Errorf("open is %v, want %v", open, c.open)
			}
		})
	}
}

// tripped returns a breaker that has just opened.
func tripped(t *testing.T) *Breaker {
	t.Helper()
	b := &Breaker{}
	for range breakAfter {
		b.Failed(start, false, 0, 0)
	}
	if _, open := b.Open(start); !open {
		t.Fatal("it did not open")
	}
	return b
}

func TestOneProbeDecidesAfterAPause(t *testing.T) {
	b := tripped(t)
	later := start.Add(firstPause)
	if _, open := b.Open(later); open {
		t.Fatal("its pause is over, and no probe may leave")
	}
	b.Begin()
	if until, open := b.Open(later); !open || !until.IsZero() {
		t.Error("a second message may leave while the probe is under way")
	}
	b.Succeeded(later, false)
	if _, open := b.Open(later); open {
		t.Error("the probe worked, and nothing may leave")
	}
	if b.Failed(later, false, 0, 0); b.Tripped() {
		t.Error("one failure after that opened it")
	}
}

func TestEachProbeThatFailsMakesTheNextPauseTwiceAsLong(t *testing.T) {
	b, now, want := tripped(t), start, firstPause
	for range 12 {
		until, open := b.Open(now)
		if pause := until.Sub(now); !open || pause != want {
			t.Fatalf("a pause of %v, want %v", pause, want)
		}
		now = until
		if !b.Failed(now, b.Begin(), 0, 0) {
			t.Fatal("the probe failed, and it did not open")
		}
		want = min(longestPause, 2*want)
	}
	for range breakAfter { // results of messages that were active when it opened
		b.Failed(now, false, 3, 0)
	}
	if until, _ := b.Open(now); until.Sub(now) != longestPause {
		t.Errorf("stragglers took the pause to %v", until.Sub(now))
	}
}

func TestRelapseContinuesTheSeriesOfPauses(t *testing.T) {
	for _, c := range []struct {
		after time.Duration
		want  time.Duration
	}{{time.Minute, 2 * firstPause}, {time.Hour, firstPause}} {
		b := tripped(t)
		now := start.Add(firstPause)
		b.Begin()
		b.Succeeded(now, false)
		now = now.Add(c.after)
		for range breakAfter {
			b.Failed(now, false, 0, 0)
		}
		if until, _ := b.Open(now); until.Sub(now) != c.want {
			t.Errorf("%v after it was well: a pause of %v, want %v", c.after, until.Sub(now), c.want)
		}
	}
}

func TestPausesAreSpreadByAFifth(t *testing.T) {
	var b Breaker
	for range breakAfter {
		b.Failed(start, false, 0, 0.999)
	}
	if until, _ := b.Open(start); until.Sub(start) < firstPause || until.Sub(start) > firstPause*12/10 {
		t.Errorf("a pause of %v", until.Sub(start))
	}
}

func TestRequestedPauseIsKeptUntilAnOperatorEndsIt(t *testing.T) {
	var b Breaker
	b.Suspend(start, time.Hour)
	if until, open := b.Open(start); !open || until != start.Add(time.Hour) {
		t.Errorf("suspended until %v (%v)", until, open)
	}
	b.Suspend(start, time.Minute) // a shorter one does not shorten the pause
	if until, _ := b.Open(start); until != start.Add(time.Hour) {
		t.Errorf("a shorter pause shortened a longer one: %v", until)
	}
	start = start.Add(time.Hour)
	if _, open := b.Open(start); open {
		t.Error("the pause is over, but nothing may be sent")
	}
	b.Begin()
	if _, open := b.Open(start); !open {
		t.Error("more than a probe may leave")
	}
}
