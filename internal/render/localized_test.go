package render

import (
	"encoding/json"
	"errors"
	"os"
	"regexp"
	"strings"
	"testing"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/render/liquid"
)

func TestLocalizedFiltersUseLocaleAndTimeZone(t *testing.T) {
	const data = `{"when":"2026-11-20T23:30:00Z","day":"2026-03-08","n":1234567.891,"one":1,"three":3,"price":"1234.5","none":null,"cur":"jpy","epoch":0}`
	tests := []struct{ template, lang, locale, zone, want string }{
		{`{{ event.when | date: "long" }}`, "", "", "", "November 20, 2026"},
		{`{{ event.when | date: "long" }}`, "", "en-GB", "Asia/Tokyo", "21 November 2026"},
		{`{{ event.when | date: 'full' }}`, "cy", "cy", "", "Dydd Gwener, 20 Tachwedd 2026"},
		{`{{ event.when | date: "long", "America/New_York" }} {{ event.when | time: "America/New_York" }}`, "", "en-GB", "Asia/Tokyo", "20 November 2026 18:30"},
		{`{{ event.when | datetime: "short" }} {{ event.when | time }}`, "", "en", "Europe/Berlin", "11/21/26, 12:30 AM 12:30 AM"},
		{`{{ event.day | date: "medium" }}`, "", "en-GB", "America/Los_Angeles", "8 Mar 2026"},
		{`{{ event.when | date: "%d.%m.%Y" }}`, "", "", "Asia/Tokyo", "20.11.2026"},
		{`{{ event.epoch | date: "short" }}[{{ event.none | date: "short" }}{{ event.none | number }}{{ event.none | time }}]`, "", "", "", "1/1/70[]"},
		{`{{ event.n | number }} {{ event.n | number: 1 }} {{ event.n | number: 0 }}`, "de", "de-AT", "", "1\u00a0234\u00a0567,891 1\u00a0234\u00a0567,9 1\u00a0234\u00a0568"},
		{`{{ event.price | money: "GBP" }} {{ event.price | money: event.cur }} {{ event.price | money: "EUR", 0 }}`, "", "en-GB", "", "£1,234.50 JP¥1,234 €1,234"},
		{`{{ event.price | money: "EUR" }}`, "ja", "ja-JP", "", "€1,234.50"},
		{`{{ event.one | plural: "one: # day", "other: # days" }}, {{ event.three | plural: "one: # day", "other: # days" }}`, "", "en", "", "1 day, 3 days"},
		{`{{ event.three | plural: "few: few", "other: other" }} {{ event.one | plural: "two: two", "other: a:b" }}`, "cy", "cy", "", "few a:b"},
		{`{{ event.when | date: "long" | upcase }}{% assign d = event.when | time %} {{ d }}`, "", "en-GB", "", "20 NOVEMBER 2026 23:30"},
		{`{% for s in subscriptions %}{{ s.data.n | number }} {{ subscriber.locale }};{% endfor %}`, "de", "de", "", "5 de;"},
		{`{{ event.when | date: "long" }}`, "cy", "fr", "", "20 Tachwedd 2026"}, // the text is Welsh
		{`{{ event.three | number }}`, "ar", "ar-EG", "", "٣"},
		{`{{ event.three | number }}`, "ar", "ar-EG-u-nu-latn", "", "3"},
	}
	for _, tt := range tests {
		for _, split := range []bool{true, false} {
			template, err := Compile(Source{Name: "x", Subject: "s", Text: tt.template})
			if err != nil {
				t.Fatalf("%s: %v", tt.template, err)
			}
			template.language = tt.lang
			if !split {
				template = undivided(template)
			}
			m := newMailing(t, Source{Text: "x"}, data)
			m.Template = template
			w, err := m.Writer()
			if err != nil {
				t.Fatal(err)
			}
			r := newRecipient()
			r.Locale, r.TimeZone = tt.locale, tt.zone
			r.Subscriptions = []Subscription{{ID: "s", Data: []byte(`{"n":5}`)}}
			p, err := w.Preview(r)
			if err != nil {
				t.Fatalf("%s: %v", tt.template, err)
			}
			if got := strings.TrimRight(p.Text, "\n"); got != tt.want {
				t.Errorf("%s to %q: %q, want %q", tt.template, tt.locale, got, tt.want)
			}
			parse(t, p.Message.Body)
		}
	}
}

func TestReferenceShowsWhatFiltersByLanguageWrite(t *testing.T) {
	b, err := os.ReadFile("../../docs/reference/template-variables.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := regexp.MustCompile("(?m)^\\| `(\\{\\{ event.*?\\}\\})` \\| (.*?) \\| (.*?) \\|$").FindAllStringSubmatch(string(b), -1)
	if len(rows) < 10 {
		t.Fatalf("the table has %d rows", len(rows))
	}
	told := ""
	for _, row := range rows {
		told += row[1]
		m := newMailing(t, Source{Subject: "s", Text: row[1]}, `{"when":"2026-11-20T15:30:00Z","n":1234567.891,"count":3}`)
		w, err := m.Writer()
		if err != nil {
			t.Fatal(err)
		}
		for i, tag := range []string{"en", "en-GB"} {
			r := newRecipient()
			r.Locale, r.TimeZone = tag, ""
			p, err := w.Preview(r)
			if got := strings.TrimSpace(p.Text); err != nil || got != row[2+i] {
				t.Errorf("%s to %s: %q, told is %q, %v", row[1], tag, got, row[2+i], err)
			}
		}
	}
	for name := range strings.FieldsSeq(liquid.LocalizedFilterNames) {
		if !strings.Contains(told, "| "+name) {
			t.Errorf("the reference does not show %s", name)
		}
	}
}

func TestRecipientsOfABatchHaveTheirOwnLocale(t *testing.T) {
	m := newMailing(t, Source{Subject: "{{ event.when | date: 'long' }}", Text: "{{ subscriber.id }} {{ event.when | time }}",
		HTML: "<p>{{ event.when | date: 'full' }}</p>"}, `{"when":"2026-11-20T23:30:00Z"}`)
	w, err := m.Writer()
	if err != nil {
		t.Fatal(err)
	}
	zones := []string{"", "Asia/Tokyo", "Europe/London", "America/New_York", "Pacific/Apia"}
	locales := []string{"", "en", "en-GB", "en-AU", "en-CA", "cy", "en-IN", "en-US", "en-ZA", "en-NZ", "en-IE", "en-SG", "en-HK", "en-DE"}
	for range 2 {
		for _, locale := range locales {
			for _, zone := range zones {
				r := newRecipient()
				r.Locale, r.TimeZone = locale, zone
				got, _, err := w.Write(nil, r)
				if err != nil {
					t.Fatal(err)
				}
				alone, err := m.Writer()
				if err != nil {
					t.Fatal(err)
				}
				if want, _, err := alone.Write(nil, r); err != nil || string(got.Body) != string(want.Body) {
					t.Fatalf("%s %s: %s, alone %s, %v", locale, zone, got.Body, want.Body, err)
				}
			}
		}
	}
	if n := len(w.byLocalization.byKey); n > maxWriters || n < 2 {
		t.Errorf("%d writers are kept", n)
	}
}

func TestCompileChecksLocalizedFilters(t *testing.T) {
	for template, want := range map[string]string{
		`{{ event.a | datetime: "longish" }}`:                    `unknown style "longish"`,
		`{{ event.a | date: "long", "Europe/Lundon" }}`:          `unknown time zone "Europe/Lundon"`,
		`{{ event.a | time: "Mars" }}`:                           `unknown time zone "Mars"`,
		`{{ event.a | money }}`:                                  "the filter money requires a currency",
		`{{ event.a | plural: "one: x" }}`:                       `the plural form "other" is missing`,
		`{{ event.a | plural: "on: x", "other: y" }}`:            `unknown plural form "on"`,
		`{{ event.a | fanfare_number: fanfare_localization }}`:   `unknown filter "fanfare_number"`,
		`{{ fanfare_localization }}`:                             "unknown variable fanfare_localization",
		`{{ event.a | numbr }}`:                                  `unknown filter "numbr"`,
		`{% assign d = event.a | time: "Nowhere/City" %}{{ d }}`: `unknown time zone "Nowhere/City"`,
	} {
		_, err := Compile(Source{Name: "x", Subject: "s", Text: "\n" + template})
		if err == nil {
			t.Errorf("%s is compiled", template)
			continue
		}
		if e := problem(t, err); !strings.Contains(e.Message, want) || e.Line != 2 {
			t.Errorf("%s: %+v", template, *e)
		}
	}
}

func TestErrorNamesValueThatIsNoDateOrNumber(t *testing.T) {
	for template, want := range map[string]string{
		`{{ event.a | date: "long" }}`:                    `"soon" is not a date`,
		`{{ event.a | number }}`:                          `"soon" is not a number`,
		`{{ event.a | money: "EUR" }}`:                    `"soon" is not a number`,
		`{{ event.a | plural: "other: x" }}`:              `"soon" is not a number`,
		`{{ event.b | date: "long", event.a }}`:           `unknown time zone "soon"`,
		`{{ subscription.data.link | time: "UTC" }}`:      "is not a date",
		`{{ event.b | money: event.c }}{{ event.b | x }}`: "",
	} {
		m := newMailing(t, Source{Text: "x"}, `{"a":"soon","b":5,"c":"EUR"}`)
		var err error
		if m.Template, err = Compile(Source{Name: "x", Subject: "s", Text: "\n" + template}); err != nil {
			if want != "" {
				t.Errorf("%s: %v", template, err)
			}
			continue
		}
		w, err := m.Writer()
		if err != nil {
			t.Fatal(err)
		}
		_, _, err = w.Write(nil, newRecipient())
		if err == nil {
			t.Errorf("%s is written", template)
			continue
		}
		if e := problem(t, err); !strings.Contains(e.Message, want) || e.Line != 2 || e.Pointer != "/templates/x/text" {
			t.Errorf("%s: %+v", template, *e)
		}
	}
}

// The error about a date filter on a string field says what to write into the schema and names
// no internal filter.
func TestDateFilterNeedsADateFormatInTheSchema(t *testing.T) {
	for _, filter := range []string{"datetime", "time", `date: "long"`} {
		template, err := Compile(Source{Name: "x", Subject: "x", Text: "\n{{ event.when | " + filter + " }}"})
		if err != nil {
			t.Fatal(err)
		}
		_, _, _, err = template.DryRun(json.RawMessage(`{"properties":{"when":{"type":"string"}}}`))
		wrong, ok := errors.AsType[*fanfare.Error](err)
		if !ok || wrong.Line != 2 || !strings.Contains(wrong.Hint, "format: date-time") || strings.Contains(wrong.Message, "fanfare_") || strings.Contains(wrong.Message, "sample") {
			t.Errorf("%s: %+v", filter, err)
		}
		if _, _, _, err = template.DryRun(json.RawMessage(`{"properties":{"when":{"type":"string","format":"date-time"}}}`)); err != nil {
			t.Errorf("%s with a format: %v", filter, err)
		}
	}
}

func TestErrorsNameFiltersAsWritten(t *testing.T) {
	for filter, name := range map[string]string{"datetime": "datetime", `date: "long"`: "date", "time": "time", "number": "number", `money: "EUR"`: "money", `plural: "other: #"`: "plural"} {
		template, err := Compile(Source{Name: "x", Subject: "x", Text: "{{ event.when | " + filter + " }}"})
		if err != nil {
			t.Fatal(err)
		}
		_, err = template.renderAll(map[string]any{"event": map[string]any{"when": "soon"}, liquid.LocalizationVariable: &template.localizationFor("", "").Localization}, nil)
		if err == nil || strings.Contains(err.Error(), "fanfare_") || !strings.Contains(err.Error(), "filter "+name+": ") {
			t.Errorf("%s: %v", filter, err)
		}
	}
}
