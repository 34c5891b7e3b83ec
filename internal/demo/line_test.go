package demo

import (
	"encoding/json"
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
	encode := func(seed uint64) string {
		var b strings.Builder
		for line := range Subscriptions(1000, seed) {
			if err := json.NewEncoder(&b).Encode(line); err != nil {
				t.Fatal(err)
			}
		}
		return b.String()
	}
	first, again := encode(7), encode(7)
	if first != again {
		t.Error("two runs with one seed differ")
	}
	if first == encode(8) {
		t.Error("two seeds give the same")
	}
	for line := range strings.Lines(first) {
		if strings.Contains(line, `"rule"`) == strings.Contains(line, `"filter"`) {
			t.Errorf("neither rule nor filter, or both: %s", line)
		}
	}
}

func TestTheSequenceCanBeLeftEarly(t *testing.T) {
	n := 0
	for range Subscriptions(1000, 1) {
		if n++; n == 3 {
			break
		}
	}
	if n != 3 {
		t.Errorf("%d lines", n)
	}
}
