package registry

import (
	"maps"
	"slices"

	"fanfare.dev/fanfare/internal/catalog"
)

// templateNotes say which topics of the document lose their template. A document says
// all of a topic that it names: who wrote down a part of it meant to keep the rest.
func (pl *plan) templateNotes() (notes []string) {
	before := pl.from.Services[pl.svc.Name]
	if before == nil || !slices.ContainsFunc(catalog.SortedValues(pl.svc.Channels), func(ch *catalog.Channel) bool { return ch.Driver != "webhook" }) {
		return nil // programs need no template
	}
	for _, name := range slices.Sorted(maps.Keys(pl.doc.Topics)) {
		old, now := before.Topics[name], pl.svc.Topics[name]
		if old != nil && now != nil && old.Template != "" && now.Template == "" {
			notes = append(notes, "topic "+name+" has no template any more, since the document names the topic without one: what its subscribers would get by mail fails until it has one")
		}
	}
	return notes
}
