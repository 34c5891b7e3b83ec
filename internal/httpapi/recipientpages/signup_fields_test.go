package recipientpages

import (
	"net/url"
	"strings"
	"testing"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/catalog"
	"fanfare.dev/fanfare/internal/people/pages"
)

func TestFormErrorsNameTheFieldAndQuoteNoError(t *testing.T) {
	for pointer, want := range map[string]string{
		"/to":                 "This is not a valid email address.",
		"/cadence":            "Please check this field: How often",
		"/time_zone":          "Please check this field: Time zone",
		"/params/min-level":   "Please check this field: Min level",
		"/params":             "Please check this field: Which messages do you want?",
		"/subscriptions/0/id": "Please check your entries and send the form again.",
		"":                    "Please check your entries and send the form again.",
	} {
		site := &pages.Site{}
		text := fieldFault(site, "en", &fanfare.Error{Code: fanfare.Invalid, Pointer: pointer, Message: "internal: no such row"})
		if got := site.Texts.Say("en", text.Name, text.Values...); got != want || strings.Contains(got, "internal") {
			t.Errorf("%s: got %q, want %q", pointer, got, want)
		}
	}
}

func TestParamErrorsSayWhatToEnter(t *testing.T) {
	rules := []catalog.Rule{{Name: "above", Params: map[string]string{"min-level": "number", "place": "string"}}}
	for want, sent := range map[string]url.Values{
		"":                                 {"p-above-min-level": {"3"}, "p-above-place": {"York"}},
		"Please fill in this field: Place": {"p-above-min-level": {"3"}},
		"Please enter a number in this field: Min level": {"p-above-min-level": {"three"}, "p-above-place": {"York"}},
	} {
		site, chosen := &pages.Site{}, ""
		params, fault := paramsOf(site, "en", rules, &chosen, sent)
		if want == "" && (fault.Name != "" || string(params) != `{"min-level":3,"place":"York"}`) || want != "" && site.Texts.Say("en", fault.Name, fault.Values...) != want {
			t.Errorf("%v: %s, %+v", sent, params, fault)
		}
	}
	other := "other"
	if _, fault := paramsOf(&pages.Site{}, "en", rules, &other, nil); fault.Name != "entry_wrong" {
		t.Errorf("an unknown rule: %+v", fault)
	}
}
