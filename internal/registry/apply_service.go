package registry

import (
	"encoding/json"
	"maps"
	"slices"

	"fanfare.dev/fanfare/internal/catalog/audit"
	"fanfare.dev/fanfare/internal/store/control"

	"fanfare.dev/fanfare/internal/inputerror"
)

const maxTitleBytes = 512

// serviceNumber is the number that the name had before it was deleted, or a new
// one.
func (pl *plan) serviceNumber(name string) uint32 {
	for number, known := range pl.to.names {
		if known == name {
			return number
		}
	}
	return nextNumber(maps.Keys(pl.to.names))
}

// settings takes over title, budget, approval and limits, and returns what of them was another.
func (pl *plan) settings() (changes []audit.FieldChange) {
	if title := pl.doc.Title; title != nil && *title != pl.svc.title {
		if len(*title) > maxTitleBytes {
			pl.fail("/title", inputerror.TooLarge("", len(*title), maxTitleBytes))
		}
		changes = append(changes, audit.FieldChange{Field: "title", Old: pl.svc.title, New: *title})
		pl.svc.title = *title
	}
	if change, changed := pl.setBudget(); changed {
		changes = append(changes, change)
	}
	return slices.Concat(changes, pl.setApproval(), pl.setLimits(), pl.setPages())
}

func (pl *plan) keepService(deleted bool) {
	body, _ := json.Marshal(serviceBody{pl.svc.title, Duration(pl.svc.budget), pl.svc.approval, pl.svc.limits, pl.svc.pages}) // plain: cannot fail
	pl.records = append(pl.records, control.ConfigRecord{Kind: kindService, Number: pl.svc.number, Name: pl.svc.name, Body: body, Deleted: deleted})
}

// deleteService takes away the service and all that it has. What checkUse finds
// in use refuses it.
func (pl *plan) deleteService() {
	for _, c := range sortedValues(pl.svc.channels) {
		pl.channel(c.Name, &ChannelSpec{Delete: true})
	}
	for _, t := range sortedValues(pl.svc.topics) {
		pl.topic(t.Name, &TopicSpec{Delete: true})
	}
	for _, t := range sortedValues(pl.svc.templates) {
		pl.template(t.Name, &TemplateSpec{Delete: true})
	}
	for of := range pl.to.drafts { // of what was never published
		if of.service == pl.svc.name {
			pl.discard(of.template)
		}
	}
	delete(pl.to.services, pl.svc.name) // its number and name stay taken
	pl.diff.add(kindService, pl.svc.name, "delete", nil)
	pl.keepService(true)
}

// orphans adds to b that the keys of a deleted service end with it.
func (pl *plan) orphans(b *control.Batch) []*heldKey {
	if !pl.doc.deleted {
		return nil
	}
	keys := pl.r.keyring.list(pl.svc.name)
	for _, k := range keys {
		b.Config = append(b.Config, control.ConfigRecord{Kind: kindKey, Number: k.number, Service: pl.svc.number, Name: k.name, Body: []byte("{}"), Deleted: true})
	}
	return keys
}
