package demo

import (
	"strings"
	"testing"
)

// The demonstration promises 200,000 to 300,000 mails.
func TestTheWeekMakesAQuarterOfAMillionMails(t *testing.T) {
	want := expect(t, 100_000)
	t.Logf("%+v", want)
	if want.conditions < 3000 {
		t.Errorf("%d different conditions, want at least 3000", want.conditions)
	}
	if want.mails < 200_000 || want.mails > 300_000 {
		t.Errorf("%d mails, want 200000 to 300000", want.mails)
	}
}

func TestTheSameSeedGivesTheSamePeople(t *testing.T) {
	for _, x := range examples() {
		write := func(seed uint64) string {
			var b strings.Builder
			if err := x.writeLines(&b, 1000, seed, func(Line) {}); err != nil {
				t.Fatal(err)
			}
			return b.String()
		}
		first, again := write(7), write(7)
		if first != again {
			t.Errorf("%s: two runs with one seed differ", x.name)
		}
		if first == write(8) {
			t.Errorf("%s: two seeds give the same", x.name)
		}
		for line := range strings.Lines(first) {
			if strings.Contains(line, `"rule"`) == strings.Contains(line, `"filter"`) {
				t.Errorf("neither rule nor filter, or both: %s", line)
			}
		}
	}
}

func TestTheSequenceCanBeLeftEarly(t *testing.T) {
	n := 0
	for range earthquakesExample().subscriptions(1000, 1) {
		if n++; n == 3 {
			break
		}
	}
	if n != 3 {
		t.Errorf("%d lines", n)
	}
}

func TestDrawsFollowTheWeights(t *testing.T) {
	var w weighted[string]
	w.add("seldom", 1)
	w.add("often", 3)
	random, often := newRandom(1), 0
	for range 4000 {
		if w.draw(random) == "often" {
			often++
		}
	}
	if often < 2850 || often > 3150 {
		t.Errorf("%d of 4000, about 3000 are expected", often)
	}
}
