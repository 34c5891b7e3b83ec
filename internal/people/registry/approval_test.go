package registry_test

import (
	"strings"
	"testing"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/catalog"
	"fanfare.dev/fanfare/internal/catalog/document"
	"fanfare.dev/fanfare/internal/store/storetest"
)

func TestLargeBroadcastsWaitForApproval(t *testing.T) {
	place := storetest.Place(t)
	r, _ := openAt(t, place)
	apply(t, r, weather)
	apply(t, r, `
service: notify
hold_above: 100
topics:
  small: {hold_above: 10}
  alarm: {hold_above: 10, hold_exempt_urgent: true}
  siren: {hold_exempt_urgent: true}
`)
	check := func(when string) {
		t.Helper()
		for _, test := range []struct {
			topic    string
			lane     fanfare.Lane
			messages int64
			want     string
		}{
			{"change", fanfare.Bulk, 100, ""},
			{"change", fanfare.Bulk, 101, "101 messages are more than the limit of 100 of service notify"},
			{"change", fanfare.Urgent, 101, "of service notify"},
			{"", fanfare.Bulk, 101, "of service notify"}, // to people who are named
			{"small", fanfare.Bulk, 10, ""},
			{"small", fanfare.Urgent, 11, "11 messages are more than the limit of 10 of topic small"},
			{"alarm", fanfare.Normal, 11, "of topic alarm"},
			{"alarm", fanfare.Urgent, 1_000_000, ""},
			{"siren", fanfare.Normal, 101, "of service notify"},
			{"siren", fanfare.Urgent, 101, ""},
		} {
			got := r.Hold(&fanfare.AcceptedEvent{Service: "notify", Topic: test.topic, Lane: test.lane}, test.messages)
			if (got == "") != (test.want == "") || !strings.Contains(got, test.want) {
				t.Errorf("%s: %d messages of %q in %v: %q, want %q", when, test.messages, test.topic, test.lane, got, test.want)
			}
		}
	}
	check("as it was applied")
	r.Close()
	r, _ = openAt(t, place)
	check("after a restart")
	diff := apply(t, r, "service: notify\nhold_above: 200\nhold_exempt_urgent: true\n")
	if len(diff.Changes) != 1 || len(diff.Changes[0].Fields) != 2 {
		t.Errorf("the difference is %+v", diff)
	}
	if got := r.Hold(&fanfare.AcceptedEvent{Service: "notify", Topic: "change", Lane: fanfare.Bulk}, 150); got != "" {
		t.Errorf("150 messages: %q", got)
	}
	if s := r.Configuration().Service("notify"); s.HoldAbove != 200 || !s.HoldExemptUrgent {
		t.Errorf("the service is %+v", s)
	}
	for _, wrong := range []string{"hold_above: 0", "hold_above: many", "hold_exempt_urgent: 1"} {
		if _, err := document.ParseDocument([]byte("service: notify\n"+wrong+"\n"), ""); err == nil {
			t.Errorf("%s is taken", wrong)
		}
	}
}

func TestAnApplySaysThatAnExemptionHasNothingToBeExemptFrom(t *testing.T) {
	r, _ := openAt(t, storetest.Place(t))
	apply(t, r, weather)
	for _, test := range []struct {
		document string
		want     []string
	}{
		{"topics:\n  siren: {hold_exempt_urgent: true}\n  alarm: {hold_above: 5, hold_exempt_urgent: true}\n", []string{"of topic siren"}},
		{"hold_exempt_urgent: true\n", []string{"of the service"}},
		{"hold_above: 5\n", nil},
		{"topics:\n  siren: {hold_exempt_urgent: true, title: Siren}\n", nil},
	} {
		notes := apply(t, r, "service: notify\n"+test.document).Notes
		if len(notes) != len(test.want) {
			t.Fatalf("%s: notes %q", test.document, notes)
		}
		for i, want := range test.want {
			if !strings.Contains(notes[i], want) || !strings.Contains(notes[i], "no effect") {
				t.Errorf("%s: notes %q", test.document, notes)
			}
		}
	}
}

func TestARateThatIsSetByHandCountsUntilItIsTakenBack(t *testing.T) {
	place := storetest.Place(t)
	r, _ := openAt(t, place)
	apply(t, r, weather)
	apply(t, r, `
service: notify
channels:
  email: {driver: smtp, relay: "127.0.0.1:25", from: "News <news@example.org>", rate: 30/s}
`)
	is := func(when, want string, wantByHand bool) {
		t.Helper()
		c, _ := r.ChannelNamed("notify", "email")
		if rate, byHand := r.ChannelRate(c); rate.String() != want || byHand != wantByHand {
			t.Errorf("%s: %v (%v), want %s (%v)", when, rate, byHand, want, wantByHand)
		}
	}
	set := func(text string) {
		t.Helper()
		var asked *catalog.Rate
		if text != "" {
			rate, err := catalog.ParseRate(text)
			if err != nil {
				t.Fatal(err)
			}
			asked = &rate
		}
		if err := r.SetChannelRate(t.Context(), "notify/email", asked); err != nil {
			t.Fatal(err)
		}
	}
	reopen := func() {
		t.Helper()
		r.Close()
		r, _ = openAt(t, place)
	}
	is("at first", "30/s", false)
	set("500/s")
	is("set", "500/s", true)
	reopen()
	is("after a restart", "500/s", true)
	doc, err := document.ParseDocument([]byte(strings.ReplaceAll(weather, "unlimited", "40/s")), "")
	if err != nil {
		t.Fatal(err)
	}
	if diff, err := r.Plan(t.Context(), doc); err != nil || len(diff.Notes) != 1 || !strings.Contains(diff.Notes[0], "overridden with 500/s") {
		t.Errorf("a plan notes %q (%v)", diff.Notes, err)
	}
	if _, err := r.Apply(t.Context(), doc); err != nil {
		t.Fatal(err)
	}
	is("after another was applied", "500/s", true)
	set("unlimited")
	is("without a limit", "unlimited", true)
	set("")
	is("taken back", "40/s", false)
	if all := r.ManualRates(); len(all) != 0 {
		t.Errorf("set are %+v", all)
	}
	reopen()
	is("taken back, after a restart", "40/s", false)
	set("7/min")
	is("set again", "7/min", true)
	if err := r.SetChannelRate(t.Context(), "notify/none", nil); fanfare.CodeOf(err) != fanfare.NotFound {
		t.Errorf("of no channel: %v", err)
	}
}
