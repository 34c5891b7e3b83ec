package liquid

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	osteele "github.com/osteele/liquid"

	"fanfare.dev/fanfare/internal/render/locale"
)

// Localized filters write values in the language and time zone of the message. The compiler
// passes the localization as their first argument.
//
//	{{ event.time | date: "long" }}                  full, long, medium, short; a second argument is a time zone
//	{{ event.time | time }}                          hour and minute
//	{{ event.time | datetime: "medium" }}
//	{{ event.mag | number: 1 }}                      number of decimals; by default at most three
//	{{ event.price | money: "EUR" }}                 ISO 4217 code; a second argument is the number of decimals
//	{{ n | plural: "one: # day", "other: # days" }}  # is the number
//
// The filter date is localized only with a style. With a pattern such as "%d.%m.%Y" it is the
// one of the library.
const LocalizedFilterNames = " datetime money number plural time "

// localizedPrefix begins the names of localized filters in the rewritten source.
const localizedPrefix = "fanfare_"

// localizationNeeded tells what a filter needs; after are the tokens behind its name.
func localizationNeeded(name string, after []token) LocalizationNeed {
	switch name {
	case "number", "money", "plural":
		return ByLanguage
	case "date":
		if len(after) == 0 || after[0].kind != literal || !isStyle(unquote(after[0].text)) {
			return NotLocalized
		}
	case "time":
		if len(after) > 0 && after[0].kind == literal {
			return ByLanguage // the zone is given
		}
		return ByLanguageAndZone
	case "datetime":
	default:
		return NotLocalized
	}
	if len(after) > 2 && after[1].text == "," && after[2].kind == literal {
		return ByLanguage
	}
	return ByLanguageAndZone
}

func isStyle(name string) bool {
	_, ok := locale.ParseStyle(name)
	return ok
}

func unquote(literal string) string { return strings.Trim(literal, `"'`) }

// checkLocalized returns what is wrong with the literal arguments of a localized filter, and a
// hint.
func checkLocalized(name string, after []token) (message, hint string) {
	text := ""
	if len(after) > 0 && after[0].kind == literal {
		text = unquote(after[0].text)
	}
	switch name {
	case "datetime":
		if text != "" && !isStyle(text) {
			return "unknown style " + strconv.Quote(text), "write full, long, medium or short"
		}
	case "money":
		if text == "" && (len(after) == 0 || after[0].kind == literal) {
			return "the filter money requires a currency", `write money: "EUR", or pass a variable that contains the currency code`
		}
	case "plural":
		return checkPluralForms(after)
	}
	zone := ""
	switch {
	case name == "time":
		zone = text
	case (name == "date" || name == "datetime") && len(after) > 2 && after[2].kind == literal:
		zone = unquote(after[2].text)
	}
	if _, err := time.LoadLocation(zone); err != nil {
		return "unknown time zone " + strconv.Quote(zone), "use a name such as Europe/London"
	}
	return "", ""
}

const pluralUsage = `: write plural: "one: # day", "other: # days"`

func checkPluralForms(after []token) (message, hint string) {
	other := false
	for _, t := range after {
		if t.kind != literal {
			continue
		}
		form, _, named := strings.Cut(unquote(t.text), ":")
		if !named || !slices.Contains(locale.PluralForms(), form) {
			return "unknown plural form " + strconv.Quote(form), "the forms are " + strings.Join(locale.PluralForms(), ", ") + pluralUsage
		}
		other = other || form == "other"
	}
	if !other {
		return "the plural form \"other\" is missing", strings.TrimPrefix(pluralUsage, ": ")
	}
	return "", ""
}

// registerLocalized adds the localized filters to an engine.
func registerLocalized(e *osteele.Engine) {
	dated := func(write func(v *Localization, t time.Time, style locale.Style) string) func(value any, v *Localization, style func(string) string, zone func(string) string) (string, error) {
		return func(value any, v *Localization, style, zone func(string) string) (string, error) {
			how, ok := locale.ParseStyle(cmp.Or(style("medium"), "medium"))
			if !ok {
				return "", fmt.Errorf("%q is not a style: use full, long, medium or short", style(""))
			}
			t, err := v.parseTime(value, zone(""))
			if err != nil || t.IsZero() {
				return "", err
			}
			return write(v, t, how), nil
		}
	}
	e.RegisterFilter(localizedPrefix+"date", dated(func(v *Localization, t time.Time, style locale.Style) string { return v.Locale.Date(t, style) }))
	e.RegisterFilter(localizedPrefix+"datetime", dated(func(v *Localization, t time.Time, style locale.Style) string { return v.Locale.DateTime(t, style) }))
	e.RegisterFilter(localizedPrefix+"time", func(value any, v *Localization, zone func(string) string) (string, error) {
		t, err := v.parseTime(value, zone(""))
		if err != nil || t.IsZero() {
			return "", err
		}
		return v.Locale.Time(t), nil
	})
	e.RegisterFilter(localizedPrefix+"number", func(value any, v *Localization, digits func(int) int) (string, error) {
		d, given, err := decimal(value)
		if err != nil || !given {
			return "", err
		}
		if n := digits(-1); n >= 0 {
			return v.Locale.Fixed(d, min(n, maxFraction)), nil
		}
		return v.Locale.Number(d), nil
	})
	e.RegisterFilter(localizedPrefix+"money", func(value any, v *Localization, currency string, digits func(int) int) (string, error) {
		d, given, err := decimal(value)
		if err != nil || !given {
			return "", err
		}
		currency = strings.ToUpper(currency)
		return v.Locale.Money(d, currency, max(0, min(digits(locale.CurrencyDigits(currency)), maxFraction))), nil
	})
	e.RegisterFilter(localizedPrefix+"plural", func(value any, v *Localization, forms ...string) (string, error) {
		d, given, err := decimal(value)
		if err != nil || !given {
			return "", err
		}
		form, said := v.Locale.Plural(d), ""
		for _, one := range forms {
			name, text, _ := strings.Cut(one, ":")
			if name == form || name == "other" && said == "" {
				said = strings.TrimPrefix(text, " ")
			}
			if name == form {
				break
			}
		}
		return strings.ReplaceAll(said, "#", v.Locale.Number(d)), nil
	})
}

// maxFraction is the largest number of decimals that a template may ask for.
const maxFraction = 20

// parseTime reads a date: RFC 3339, a date without time, which is the same day in every time
// zone, or seconds since 1970. Nil and "" are the zero time.
func (v *Localization) parseTime(value any, zone string) (time.Time, error) {
	where := v.Zone
	if zone != "" {
		named, err := time.LoadLocation(zone)
		if err != nil {
			return time.Time{}, fmt.Errorf("unknown time zone %q", zone)
		}
		where = named
	}
	switch value := value.(type) {
	case nil:
		return time.Time{}, nil
	case int:
		return time.Unix(int64(value), 0).In(where), nil
	case string:
		if t, err := time.Parse(time.RFC3339, value); err == nil {
			return t.In(where), nil
		}
		for _, local := range []string{"2006-01-02", "2006-01-02T15:04:05", "2006-01-02 15:04:05"} {
			if t, err := time.Parse(local, value); err == nil {
				return t, nil
			}
		}
		if value == "" {
			return time.Time{}, nil
		}
	}
	return time.Time{}, errors.New(NotADate(fmt.Sprint(value)) + ": write 2026-01-31 or 2026-01-31T12:00:00Z")
}

func NotADate(value string) string { return fmt.Sprintf("%.60q is not a date", value) }

// decimal reads a number; given is false for nil and "".
func decimal(value any) (d locale.Decimal, given bool, err error) {
	text := strings.TrimSpace(string(AppendValue(nil, value, Plain)))
	if text == "" {
		return d, false, nil
	}
	if d, given = locale.ParseDecimal(text); !given {
		return d, false, errors.New(strconv.Quote(text[:min(len(text), 60)]) + " is not a number")
	}
	return d, true, nil
}

// A Localization is the language and the time zone that a message is written in.
type Localization struct {
	Locale *locale.Locale
	Zone   *time.Location
}

// LocalizationVariable is the variable that holds the Localization. No template can name it.
const LocalizationVariable = "fanfare_localization"

// A LocalizationNeed is the part of a localization that a part of a template needs.
type LocalizationNeed uint8

const (
	NotLocalized      LocalizationNeed = iota
	ByLanguage                         // the language
	ByLanguageAndZone                  // the language and the time zone
)
