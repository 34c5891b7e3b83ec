package liquid

import (
	"strings"
)

// A variable that a template may read and that one event or recipient lacks is
// empty. Nobody can tell whether it is one of those, or a name that was misspelled,
// where no schema says what an event has: of these a message reports the first that
// it lacks, or refuses them.

// MissingVariables are the uncertain variables that the messages of one writer lacked.
type MissingVariables struct {
	Uncertain, Opaque map[string]bool       // variables that no schema knows, and those whose origin is unknown
	OnMissing         func(variable string) // nil: nobody asks
	Refuse            bool
	Sample            bool // an object of a sample has all that the schema knows
	reported          map[string]bool
}

// Report takes notice of a variable that is not there. object says that what should
// have it is there, and has other members. The error names the variable.
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

// QuotePath is a path as it stands between the quotes of the compiler.
func QuotePath(path string) string { return strings.ReplaceAll(path, "'", `"`) }
