package locale_test

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"fanfare.dev/fanfare/internal/render/locale"
)

func TestTagsFollowBCP47(t *testing.T) {
	for tag, want := range map[string]string{
		"": "", "EN": "en", "pt_br": "pt-BR pt", "zh-hant-tw": "zh-Hant-TW zh-Hant zh", "es-419": "es-419 es",
		"ar-EG-u-nu-latn": "ar-EG-u-nu-latn ar-EG-u-nu ar-EG ar", "de-x-own": "de-x-own de",
	} {
		if got := strings.Join(slices.Collect(locale.Lookup(locale.Normal(tag))), " "); got != want {
			t.Errorf("%q is looked up as %q, want %q", tag, got, want)
		}
	}
}

func TestNearestKnownLocaleIsChosen(t *testing.T) {
	for tag, want := range map[string]string{
		"": "en", "tlh": "en", "de-XX": "de", "pt_br": "pt", "pt-PT": "pt-PT", "zh-TW": "zh-Hant", "iw": "he", "no-nynorsk": "nn",
		"en-GB-oxendict": "en-GB", "ar-u-nu-arab": "ar", "\x00": "en", "-": "en", strings.Repeat("x-", 500): "en",
	} {
		if got := locale.Find(tag).Tag(); got != want {
			t.Errorf("%q is written as %q, want %q", tag, got, want)
		}
	}
}

// A locale without a name or a pattern would cause a panic while a mail is written.
func TestEveryLocaleHasAllFormats(t *testing.T) {
	data, err := os.ReadFile("cldr/locales.txt")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for line := range strings.Lines(string(data)) {
		tag, _, _ := strings.Cut(line, "\t")
		l := locale.Find(tag)
		if l.Tag() == locale.English && tag != locale.English && !strings.HasPrefix(tag, "en") {
			t.Errorf("%s is not found", tag)
		}
		for month := range 12 {
			for _, style := range []locale.Style{locale.Full, locale.Long, locale.Medium, locale.Short} {
				moment := time.Date(2026, time.Month(month+1), 1+month%7, 2*month, 5, 0, 0, time.UTC)
				if got := l.DateTime(moment, style); got == "" || strings.ContainsAny(got, "{}\x00") {
					t.Errorf("%s writes %q", tag, got)
				}
			}
		}
		d, _ := locale.ParseDecimal("-1234567.5")
		for _, got := range []string{l.Number(d), l.Fixed(d, 2), l.Money(d, "GBP", 2)} {
			if len(got) < len("1234567.5") || strings.ContainsAny(got, "#¤;{}") {
				t.Errorf("%s writes %q", tag, got)
			}
		}
		n++
	}
	if n < 700 {
		t.Errorf("only %d locales", n)
	}
}

func TestLanguagesHaveTheirPluralForms(t *testing.T) {
	for tag, want := range map[string]string{
		"en": "one other", "cy": "zero one two few many other", "ar": "zero one two few many other", "ja": "other", "pl": "one few many other",
	} {
		if got := strings.Join(locale.Find(tag).PluralForms(), " "); got != want {
			t.Errorf("%s has %s, want %s", tag, got, want)
		}
	}
	for number, want := range map[string]string{"1": "one", "1.0": "other", "1.5": "other", "-1": "one", "99999999999999999999999": "other"} {
		d, ok := locale.ParseDecimal(number)
		if got := locale.Find("en").Plural(d); !ok || got != want {
			t.Errorf("%s is %s, want %s", number, got, want)
		}
	}
}

func TestHalfRoundsToEven(t *testing.T) {
	for _, tt := range []struct {
		number string
		digits int
		want   string
	}{
		{"0.5", 0, "0"}, {"1.5", 0, "2"}, {"2.5", 0, "2"}, {"2.51", 0, "3"}, {"2.500", 0, "2"}, {"9.995", 2, "10.00"}, {"9.985", 2, "9.98"},
		{"999.99", 1, "1,000.0"}, {"-0.004", 2, "-0.00"}, {"007", 2, "7.00"}, {"1e3", 0, "1,000"}, {"123456789012345678901234567890", 0, "123,456,789,012,345,678,901,234,567,890"},
	} {
		d, ok := locale.ParseDecimal(tt.number)
		if got := locale.Find("en").Fixed(d, tt.digits); !ok || got != tt.want {
			t.Errorf("%s with %d digits is %q, want %q", tt.number, tt.digits, got, tt.want)
		}
	}
	for _, not := range []string{"", "-", ".5", "5.", "1,5", "0x10", "NaN", "Inf", "1_000", "1e999", "twelve", strings.Repeat("9", 65)} {
		if _, ok := locale.ParseDecimal(not); ok {
			t.Errorf("%q is taken for a number", not)
		}
	}
}
