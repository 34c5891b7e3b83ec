package mutation

import "slices"

// equivalent explains mutants that change nothing about a match, by class.
var equivalent = []struct {
	class, why string
	functions  []string // all sites of these
	sites      []string // or single ones
}{}

// equivalenceOf is the class that explains a site, "" where none does.
func equivalenceOf(s *Site) string {
	for _, e := range equivalent {
		if slices.Contains(e.functions, s.Function) || slices.Contains(e.sites, s.Name()) {
			return e.class
		}
	}
	return ""
}
