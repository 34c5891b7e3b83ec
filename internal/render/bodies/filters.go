package bodies

import "regexp"

var (
	toMarkup = regexp.MustCompile(`\|\s*(escape_once|escape|newline_to_br)\s*(\||[-]?[}%]\})`)
	asMarkup = regexp.MustCompile(`\|\s*(raw|safe)\s*(\||[-]?[}%]\})`)
)

// withoutMarkup takes the filters that write HTML out of an output, and strips
// the markup of a value that brings its own.
func withoutMarkup(source string) string {
	for toMarkup.MatchString(source) {
		source = toMarkup.ReplaceAllString(source, "$2")
	}
	return asMarkup.ReplaceAllString(source, "| strip_html $2")
}
