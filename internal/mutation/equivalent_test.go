//go:build mutation

package mutation

import "slices"

// equivalent explains mutants that change nothing about a match, by class.
var equivalent = []struct {
	class, why string
	functions  []string // all sites of these
	sites      []string // or single ones
}{
	{"which guard leads to a row", "a row is on the ways of one guard, and what these lead to is tested for the whole condition: any guard is sound, and a rare one is quick",
		[]string{"plan.rarest", "filters.rarestWay", "guards.size", "drafts.rare", "drafts.full", "handle.size"},
		[]string{"newPlan condition 2", "filters.join condition 5", "filters.join comparison 2"}},
	{"the size of what is kept together", "leaves, tables and pages may be split and grown at any size, and memory may be given back at any time",
		nil,
		[]string{"bucket.insert call 1", "bucket.insert condition 3", "bucket.insert comparison 1", "bucket.remove condition 3", "bucket.remove comparison 1", "bucket.remove assignment 4", "texts.drop assignment 1"}},
	{"which of two ways to the same result", "both sides compute the same, and one is quicker for few or for many",
		nil,
		[]string{"frame.sortFound condition 1", "frame.sortFound comparison 1", "fold condition 1"}},
	{"how the text of a filter is cut into words", "a literal is taken out only where CEL's own tree has the same literal at that position; what is cut otherwise leads to another key for the same condition",
		nil,
		[]string{"isWord comparison 1", "isWord comparison 2", "isWord comparison 3", "isWord comparison 4"}},
	{"what a schema refuses", "a field that the schema lacks is refused or taken when a condition is made; what is taken is evaluated all the same",
		nil,
		[]string{"schemaReader.mergeParts assignment 9"}},
	{"a sign that says more than it must", "signs only rule candidates out before all their parts are tested; what is in the key is said by the event as well",
		nil,
		[]string{"filters.markingOf assignment 1", "filters.markingOf assignment 2", "filters.markingOf call 1"}},
}

// equivalenceOf is the class that explains a site, "" where none does.
func equivalenceOf(s *Site) string {
	for _, e := range equivalent {
		if slices.Contains(e.functions, s.Function) || slices.Contains(e.sites, s.Name()) {
			return e.class
		}
	}
	return ""
}
