package recipientpages

import (
	"strings"
	"testing"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/people/pages"
)

func TestFormErrorsNameTheFieldAndQuoteNoError(t *testing.T) {
	for pointer, want := range map[string]string{
		"/to":                 "This is not a valid email address.",
		"/cadence":            "Please check this field: How often",
		"/time_zone":          "Please check this field: Time zone",
		"/params/min-level":   "Please check this field: Min level",
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
