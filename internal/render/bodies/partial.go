package bodies

import (
	"regexp"
	"strings"

	"fanfare.dev/fanfare"
)

// maxNesting bounds how deep partials stand in one another.
const maxNesting = 8

var (
	renderTag   = regexp.MustCompile(`\{%-?\s*render\s`)
	partialName = regexp.MustCompile(`^\s*["']([^"']+)["']\s*,?\s*`)
	argument    = regexp.MustCompile(`^\s*(\w+):\s*("[^"]*"|'[^']*'|[\w.\-\[\]]+)\s*,?`)
	identifier  = regexp.MustCompile(`"[^"]*"|'[^']*'|\.?[\pL_][\w\-]*:?`)
	localName   = regexp.MustCompile(`^\s*([\pL_][\w\-]*)`)
)

// Renders lists the partials that a text names.
func Renders(text string) (names []string) {
	for _, at := range renderTag.FindAllStringIndex(text, -1) {
		if found := partialName.FindStringSubmatch(text[at[1]:]); found != nil {
			names = append(names, found[1])
		}
	}
	return names
}

// An inclusion is a partial where it is rendered.
type inclusion struct {
	name  string
	given map[string]string // its variables, as what they are to the template
}

// include is the partial that a render tag names, with its Liquid exchanged.
func (b *builder) include(f *File, at int, args string, within []inclusion) string {
	found := partialName.FindStringSubmatch(args)
	if found == nil {
		b.fail(f.fault(at, `write {% render "name" %}, with name: value behind it for each variable that it needs`, "render without the name of a partial"))
		return ""
	}
	one := inclusion{found[1], map[string]string{}}
	for rest := args[len(found[0]):]; strings.TrimSpace(rest) != ""; {
		arg := argument.FindStringSubmatch(rest)
		if arg == nil {
			b.fail(f.fault(at, "a partial is given variables and plain values: name: event.title", "render cannot read "+strings.TrimSpace(rest)))
			return ""
		}
		one.given[arg[1]] = renamed(arg[2], within)
		rest = rest[len(arg[0]):]
	}
	text, ok := b.partials[one.name]
	if !ok {
		b.fail(f.fault(at, "the document's partials have none of this name", "unknown partial "+one.name))
		return ""
	}
	for _, outer := range within {
		if outer.name == one.name {
			b.fail(f.fault(at, "a partial cannot stand in itself", "partial "+one.name+" renders itself"))
			return ""
		}
	}
	if len(within) == maxNesting {
		b.fail(f.fault(at, "", "partials stand too deep in one another"))
		return ""
	}
	return b.exchangeIn(&File{f.Template, "partials/" + one.name, strings.TrimSuffix(text, "\n")}, append(within[:len(within):len(within)], one))
}

// renamed exchanges the variables of a partial for what it was given.
func renamed(expression string, within []inclusion) string {
	if len(within) == 0 {
		return expression
	}
	given := within[len(within)-1].given
	return identifier.ReplaceAllStringFunc(expression, func(word string) string {
		if value, ok := given[word]; ok {
			return value
		}
		return word
	})
}

// hides is the fault of a partial whose own variable would stand in the way of
// what it was given, nil where none does.
func hides(f *File, at int, m mark, within []inclusion) *fanfare.Error {
	if len(within) == 0 || m.tag != "for" && m.tag != "assign" && m.tag != "capture" && m.tag != "tablerow" {
		return nil
	}
	found := localName.FindStringSubmatch(m.args)
	if found == nil {
		return nil
	}
	for name, value := range within[len(within)-1].given {
		root, _, _ := strings.Cut(value, ".")
		if found[1] == name || found[1] == root {
			return f.fault(at, "give the partial's own variable another name", found[1]+" hides what the partial is given as "+name)
		}
	}
	return nil
}
