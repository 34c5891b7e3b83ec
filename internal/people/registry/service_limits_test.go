package registry_test

import (
	"encoding/json"
	"testing"

	"fanfare.dev/fanfare/internal/catalog"
	"fanfare.dev/fanfare/internal/catalog/document"
	"fanfare.dev/fanfare/internal/store/storetest"
)

func TestLimitsOfAServiceAreKeptAndTheirChangesAreShown(t *testing.T) {
	place := storetest.Place(t)
	r, _ := openAt(t, place)
	apply(t, r, weather)
	diff := apply(t, r, "service: notify\nrate: 360/s\ndaily_quota: {messages: 1000, zone: Europe/London}\n")
	if len(diff.Changes) != 1 || len(diff.Changes[0].Fields) != 2 || diff.Changes[0].Fields[1].New != "360/s" {
		t.Errorf("the difference is %+v", diff)
	}
	is := func(when string, want catalog.ServiceLimits) {
		t.Helper()
		if got := r.ServiceLimits("notify"); got != want {
			t.Errorf("%s: %+v, want %+v", when, got, want)
		}
	}
	want := catalog.ServiceLimits{Rate: rateOf(t, "360/s"), DailyQuota: catalog.DailyQuota{Messages: 1000, Zone: "Europe/London"}}
	is("as it was applied", want)
	r.Close()
	r, _ = openAt(t, place)
	is("after a restart", want)
	apply(t, r, "service: notify\ntitle: Notices\n")
	is("after a document that does not name them", want)

	text := "service: notify\nrate: unlimited\ndaily_quota: unlimited\n"
	doc, err := document.ParseDocument([]byte(text), "")
	if err != nil {
		t.Fatal(err)
	}
	again, err := json.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	if diff := apply(t, r, string(again)); len(diff.Changes) != 1 || len(diff.Changes[0].Fields) != 2 {
		t.Errorf("the difference is %+v", diff)
	}
	is("without them", catalog.ServiceLimits{})
	for _, wrong := range []string{"rate: often", "daily_quota: 0", "daily_quota: many", "daily_quota: {zone: Europe/London}"} {
		if _, err := document.ParseDocument([]byte("service: notify\n"+wrong+"\n"), ""); err == nil {
			t.Errorf("%s is taken", wrong)
		}
	}
}

func rateOf(t *testing.T, text string) catalog.Rate {
	t.Helper()
	rate, err := catalog.ParseRate(text)
	if err != nil {
		t.Fatal(err)
	}
	return rate
}
