package registry

import (
	"maps"
	"slices"

	"fanfare.dev/fanfare/internal/catalog"

	"fanfare.dev/fanfare/internal/inputerror"
)

// fileNotes says of which templates of the document the files stay at home, by channels
// to programs.
func (pl *plan) fileNotes() (notes []string) {
	var programs []string
	for _, ch := range catalog.SortedValues(pl.svc.Channels) {
		if ch.Driver == "webhook" {
			programs = append(programs, ch.Name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(pl.doc.Templates)) {
		spec := pl.doc.Templates[name]
		if len(programs) > 0 && !spec.Delete && len(spec.AllFiles()) > 0 {
			notes = append(notes, "template "+inputerror.Quote(name)+" has files: mails have them, and what channel "+inputerror.Quote(programs[0])+" posts to programs has not")
		}
	}
	return notes
}
