package address_test

import (
	"slices"
	"testing"

	"fanfare.dev/fanfare/internal/mail/address"
)

func TestAliasesHaveOneForm(t *testing.T) {
	for given, want := range map[string]string{
		"sales@example.org":              "sales@example.org",
		"SALES@Example.ORG":              "sales@example.org",
		"sales+eu@example.org":           "sales+eu@example.org",
		"jose\u0301@example.org":         "jos\u00e9@example.org",
		"\u212Aate@example.org":          "kate@example.org", // the Kelvin sign
		"info@xn--mnchen-3ya.example":    "info@m\u00fcnchen.example",
		"info@M\u00dcNCHEN.example":      "info@m\u00fcnchen.example",
		"\"sales\"@example.org":          "",
		"\"a b\"@example.org":            "",
		"sales":                          "",
		"sales@[192.0.2.1]":              "",
		"sal\u200bes@example.org":        "",
		"sales@example.org\r\nBcc: eve@": "",
	} {
		got, err := address.Fold(given)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%q becomes %q, %v; want %q", given, got, err, want)
		}
	}
}

func TestAMailboxIsFoundUnderAllFormsOfItsAddress(t *testing.T) {
	for given, want := range map[string][]string{
		"sales@example.org":           {"sales@example.org"},
		"Sales@example.org":           {"Sales@example.org", "sales@example.org"},
		"Info@xn--mnchen-3ya.example": {"Info@xn--mnchen-3ya.example", "info@xn--mnchen-3ya.example", "info@m\u00fcnchen.example"},
		"info@m\u00fcnchen.example":   {"info@m\u00fcnchen.example", "info@xn--mnchen-3ya.example"},
	} {
		if got := address.Forms(given); !slices.Equal(got, want) {
			t.Errorf("%q has the forms %q, want %q", given, got, want)
		}
	}
}
