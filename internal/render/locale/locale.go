package locale

import (
	_ "embed"
	"encoding/json"
	"iter"
	"strings"
)

// localesText has the data of languages and regions, one a line.
//
//go:embed cldr/locales.txt
var localesText string

// rulesText has the plural rules of languages, the digits of systems, and the decimals of currencies.
//
//go:embed cldr/rules.txt
var rulesText string

// English is the tag of the default language.
const English = "en"

// A Locale tells how one language in one region writes dates and numbers.
type Locale struct {
	tag             string
	digits          string // the ten digits; "" for 0 to 9
	hasDigitSystems bool
	plural          []rule

	data    localeData
	numbers numbers
	symbols map[string]string // of currencies, by code
}

// localeData is a line of the data.
type localeData struct {
	Months      []string `json:"months"`
	ShortMonths []string `json:"shortMonths"`
	Days        []string `json:"days"` // from Sunday
	ShortDays   []string `json:"shortDays"`
	Halves      []string `json:"halves"`  // AM and PM
	Periods     []string `json:"periods"` // of the day, by hour; may be empty
	Era         string   `json:"era"`
	Dates       []string `json:"dates"`  // by Style
	Joined      []string `json:"joined"` // {1} is the date and {0} the time; by Style
	Time        string   `json:"time"`
	Digits      string   `json:"digits"`
	Grouping    int      `json:"grouping"` // least number of digits before the first separator
}

// Find returns the locale of a language tag (BCP 47), such as cy, pt-BR or ar-u-nu-arab, which
// selects digits.
func Find(tag string) *Locale {
	tag = Normal(tag)
	tag, extensions, _ := strings.Cut(tag, "-u-")
	l := &Locale{symbols: map[string]string{}}
	raw := map[string]json.RawMessage{}
	for at := range Lookup(tag) {
		if l.read(at, raw) {
			break
		}
	}
	if l.tag == "" {
		l.read(English, raw)
	}
	if _, system, asked := strings.Cut("-"+extensions+"-", "-nu-"); asked {
		system, _, _ = strings.Cut(system, "-")
		if _, known := raw["numbers."+system]; known {
			l.data.Digits = system
		}
	}
	systems := 0
	for name := range raw {
		if strings.HasPrefix(name, "numbers.") {
			systems++
		}
	}
	l.hasDigitSystems = systems > 1
	l.takeNumbers(raw)
	l.digits, _ = dataLine(rulesText, "digits "+l.data.Digits)
	if l.data.Digits == "latn" {
		l.digits = ""
	}
	for at := range Lookup(l.tag) {
		if text, ok := dataLine(rulesText, at); ok {
			l.plural = parseRules(text)
			break
		}
	}
	return l
}

// Known reports whether the language of a tag is known.
func Known(tag string) bool {
	_, ok := dataLine(localesText, Language(tag))
	return ok && Language(tag) != ""
}

// HasDigitSystems reports whether the locale has several systems of digits.
func (l *Locale) HasDigitSystems() bool { return l.hasDigitSystems }

// Tag returns the tag of the data, such as pt for pt-XX.
func (l *Locale) Tag() string { return l.tag }

// read reads the data of a tag on top of the data of its parents.
func (l *Locale) read(tag string, raw map[string]json.RawMessage) bool {
	text, ok := dataLine(localesText, tag)
	if !ok {
		return false
	}
	if !strings.HasPrefix(text, "{") { // an alias
		return l.read(text, raw)
	}
	for at := range Lookup(tag) {
		if at != tag && l.read(at, raw) {
			break
		}
	}
	l.tag = tag
	// The data belong to the project, and the tests read every line.
	_ = json.Unmarshal([]byte(text), &l.data)
	_ = json.Unmarshal([]byte(text), &raw)
	return true
}

// dataLine returns the rest of the line that begins with a name and a tab.
func dataLine(text, name string) (string, bool) {
	name += "\t"
	i := strings.Index(text, "\n"+name)
	switch {
	case strings.HasPrefix(text, name):
		i = 0
	case i < 0:
		return "", false
	default:
		i++
	}
	line, _, _ := strings.Cut(text[i+len(name):], "\n")
	return line, true
}

// Normal returns a language tag in the recommended case of BCP 47: zh-Hant-TW.
func Normal(tag string) string {
	parts := strings.FieldsFunc(tag, func(r rune) bool { return r == '-' || r == '_' })
	extension := false
	for i, p := range parts {
		p = strings.ToLower(p)
		switch {
		case i == 0 || extension || len(p) == 1:
			extension = extension || len(p) == 1
		case len(p) == 2:
			p = strings.ToUpper(p)
		case len(p) == 4 && (p[0] < '0' || p[0] > '9'):
			p = strings.ToUpper(p[:1]) + p[1:]
		}
		parts[i] = p
	}
	return strings.Join(parts, "-")
}

// Lookup returns a tag and its less specific forms (RFC 4647, section 3.4): zh-Hant-TW,
// zh-Hant, zh.
func Lookup(tag string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for tag != "" && yield(tag) {
			i := strings.LastIndexByte(tag, '-')
			if i < 0 {
				return
			}
			tag = tag[:i]
			if n := len(tag); n > 2 && tag[n-2] == '-' { // a single character begins an extension
				tag = tag[:n-2]
			}
		}
	}
}

// Language returns the language of a tag.
func Language(tag string) string {
	language, _, _ := strings.Cut(Normal(tag), "-")
	return language
}
