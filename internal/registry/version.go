package registry

import (
	"fmt"
	"maps"
	"slices"

	"fanfare.dev/fanfare/internal/catalog"
	"fanfare.dev/fanfare/internal/catalog/document"
)

// draftNotes say of which templates in the document a draft stands beside what it
// publishes.
func (pl *plan) draftNotes() (notes []string) {
	for _, name := range slices.Sorted(maps.Keys(pl.doc.Templates)) {
		d, published := (catalog.Configuration{Snapshot: pl.to}).Draft(pl.svc.Name, name), pl.svc.Templates[name]
		if d == nil || published == nil || pl.doc.Templates[name].Action != document.ActionApply {
			continue
		}
		note := fmt.Sprintf("template %s has a draft, version %d, which stays beside what is applied: `fanfare template diff %s`", name, d.Version, name)
		if d.Base != published.Version {
			note += fmt.Sprintf("; it was kept over version %d, and is published only when it is kept again", d.Base)
		}
		notes = append(notes, note)
	}
	return notes
}
