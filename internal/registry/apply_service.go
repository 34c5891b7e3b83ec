package registry

import (
	"fanfare.dev/fanfare/internal/catalog/apply"

	"fanfare.dev/fanfare/internal/catalog"

	"fanfare.dev/fanfare/internal/store/control"
)

// deleteKeysOf adds the deletion of the keys of a deleted service to b.
func (r *Registry) deleteKeysOf(pl *apply.Plan, b *control.Batch) []*heldKey {
	if !pl.Document.DeleteService {
		return nil
	}
	keys := r.keyring.list(pl.Service.Name)
	for _, k := range keys {
		b.Config = append(b.Config, control.ConfigRecord{Kind: catalog.KindKey, Number: k.number, Service: pl.Service.Number, Name: k.name, Body: []byte("{}"), Deleted: true})
	}
	return keys
}
