package registry

import (
	"encoding/json"
	"maps"
	"slices"

	"fanfare.dev/fanfare/internal/catalog"
	"fanfare.dev/fanfare/internal/catalog/document"

	"fanfare.dev/fanfare/internal/catalog/audit"
	"fanfare.dev/fanfare/internal/store/control"

	"fanfare.dev/fanfare/internal/inputerror"
)

const maxTitleBytes = 512

// serviceNumber is the number that the name had before it was deleted, or a new
// one.
func (pl *plan) serviceNumber(name string) uint32 {
	for number, known := range pl.to.ServiceNames {
		if known == name {
			return number
		}
	}
	return nextNumber(maps.Keys(pl.to.ServiceNames))
}

// settings takes over title, budget, approval and limits, and returns what of them was another.
func (pl *plan) settings() (changes []audit.FieldChange) {
	if title := pl.doc.Title; title != nil && *title != pl.svc.Title {
		if len(*title) > maxTitleBytes {
			pl.fail("/title", inputerror.TooLarge("", len(*title), maxTitleBytes))
		}
		changes = append(changes, audit.FieldChange{Field: "title", Old: pl.svc.Title, New: *title})
		pl.svc.Title = *title
	}
	if change, changed := pl.setBudget(); changed {
		changes = append(changes, change)
	}
	return slices.Concat(changes, pl.setApproval(), pl.setLimits(), pl.setPages())
}

func (pl *plan) keepService(deleted bool) {
	body, _ := json.Marshal(catalog.ServiceBody{Title: pl.svc.Title, Budget: catalog.Duration(pl.svc.MatchingBudget), Approval: pl.svc.Approval, ServiceLimits: pl.svc.Limits, Pages: pl.svc.Pages}) // plain: cannot fail
	pl.records = append(pl.records, control.ConfigRecord{Kind: catalog.KindService, Number: pl.svc.Number, Name: pl.svc.Name, Body: body, Deleted: deleted})
}

// deleteService takes away the service and all that it has. What checkUse finds
// in use refuses it.
func (pl *plan) deleteService() {
	for _, c := range catalog.SortedValues(pl.svc.Channels) {
		pl.channel(c.Name, &document.ChannelSpec{Delete: true})
	}
	for _, t := range catalog.SortedValues(pl.svc.Topics) {
		pl.topic(t.Name, &document.TopicSpec{Delete: true})
	}
	for _, t := range catalog.SortedValues(pl.svc.Templates) {
		pl.template(t.Name, &document.TemplateSpec{Delete: true})
	}
	for of := range pl.to.Drafts { // of what was never published
		if of.Service == pl.svc.Name {
			pl.discard(of.Template)
		}
	}
	delete(pl.to.Services, pl.svc.Name) // its number and name stay taken
	pl.diff.Add(catalog.KindService, pl.svc.Name, "delete", nil)
	pl.keepService(true)
}

// orphans adds to b that the keys of a deleted service end with it.
func (pl *plan) orphans(b *control.Batch) []*heldKey {
	if !pl.doc.DeleteService {
		return nil
	}
	keys := pl.r.keyring.list(pl.svc.Name)
	for _, k := range keys {
		b.Config = append(b.Config, control.ConfigRecord{Kind: catalog.KindKey, Number: k.number, Service: pl.svc.Number, Name: k.name, Body: []byte("{}"), Deleted: true})
	}
	return keys
}
