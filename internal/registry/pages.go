package registry

import (
	"fanfare.dev/fanfare/internal/catalog"

	"fanfare.dev/fanfare/internal/catalog/audit"
)

// setPages takes over what the document says of them.
func (pl *plan) setPages() []audit.FieldChange {
	p := pl.doc.Pages
	if p == nil {
		return nil
	}
	was, is := pl.svc.Pages, *p
	pl.svc.Pages = is
	changes := catalog.FieldChanges(was, is)
	for i := range changes {
		changes[i].Field = "pages." + changes[i].Field
	}
	return changes
}
