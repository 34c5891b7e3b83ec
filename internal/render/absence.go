package render

import "strings"

// A variable that a template may read and that one event or recipient lacks is
// empty. Nobody can tell whether it is one of those, or a name that was misspelled,
// where no schema says what an event has: of these a message reports the first that
// it lacks, or refuses them.

// absences are the uncertain variables that the messages of one writer lacked.
type absences struct {
	of     *Template
	tell   func(variable string) // nil: nobody asks
	refuse bool
	sample bool // an object of a sample has all that the schema knows
	told   map[string]bool
}

// lacks takes notice of a variable that is not there. object says that what should
// have it is there, and has other members. The error names the variable.
func (a *absences) lacks(variable string, object bool) error {
	switch {
	case a == nil:
	case a.sample && object && a.of.opaque[variable], a.refuse && a.of.uncertain[variable]:
		return missingError(variable)
	case a.tell != nil && a.of.uncertain[variable] && !a.told[variable]:
		if a.told == nil {
			a.told = map[string]bool{}
		}
		a.told[variable] = true
		a.tell(variable)
	}
	return nil
}

// noteUncertain finds the variables of which only a schema could say that they
// exist, and those of which the compiler does not know where they come from.
func (t *Template) noteUncertain() {
	t.uncertain, t.opaque = map[string]bool{}, map[string]bool{}
	for _, part := range t.everyPart() {
		for _, p := range part.paths {
			if len(p.segments) == 0 {
				continue
			}
			name := spelled(p.text)
			switch p.root {
			case "event", "sub", fieldsVariable:
				t.uncertain[name] = true
			case "items":
				if len(p.segments) > 1 && p.segments[1].name == "event" {
					t.uncertain[name] = true
				}
			case "":
				if !strings.HasPrefix(name, "forloop.") {
					t.uncertain[name], t.opaque[name] = true, true
				}
			}
		}
	}
	for _, v := range t.variants {
		v.template.uncertain, v.template.opaque = t.uncertain, t.opaque
	}
}

// aboutAbsences is what a writer of the template does about variables that are not there.
func (t *Template) aboutAbsences(tell func(variable string), refuse bool) *absences {
	if tell == nil && !refuse {
		return nil
	}
	return &absences{of: t, tell: tell, refuse: refuse}
}

// spelled is a path as it stands between the quotes of the compiler.
func spelled(path string) string { return strings.ReplaceAll(path, "'", `"`) }
