package liquid

import (
	"strings"
)

// A variable that one event or recipient lacks is empty. Without a schema it is unknown whether
// such a variable is optional or misspelled. The first such variable that a message lacks is
// therefore reported, or the message is refused.

// MissingVariables collects the uncertain variables that the messages of one writer lack.
type MissingVariables struct {
	Uncertain, Opaque map[string]bool       // variables that no schema describes, and those whose origin is unknown
	OnMissing         func(variable string) // nil: no report
	Refuse            bool
	Sample            bool // an object of a sample has all members that the schema allows
	reported          map[string]bool
}

// Report notes a missing variable. object tells that the object which should have it exists and
// has other members. The error names the variable if the message must be refused.
func (a *MissingVariables) Report(variable string, object bool) error {
	switch {
	case a == nil:
	case a.Sample && object && a.Opaque[variable], a.Refuse && a.Uncertain[variable]:
		return undefinedError(variable)
	case a.OnMissing != nil && a.Uncertain[variable] && !a.reported[variable]:
		if a.reported == nil {
			a.reported = map[string]bool{}
		}
		a.reported[variable] = true
		a.OnMissing(variable)
	}
	return nil
}

// QuotePath returns a path as the compiler writes it between quotes.
func QuotePath(path string) string { return strings.ReplaceAll(path, "'", `"`) }
