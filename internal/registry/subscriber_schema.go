package registry

import (
	"bytes"

	"fanfare.dev/fanfare/internal/catalog"

	"fanfare.dev/fanfare/internal/catalog/audit"
	"fanfare.dev/fanfare/internal/store/control"
)

// subscriberSchema takes over the schema of the document; null takes it away.
func (pl *plan) subscriberSchema() {
	text := pl.doc.SubscriberSchema
	if len(text) == 0 {
		return
	}
	is := []byte("null")
	if old := pl.to.SubscriberSchemas[pl.svc.Number]; old != nil {
		is = old.Text
	}
	if bytes.Equal(text, is) {
		return
	}
	pl.diff.Add(catalog.KindService, pl.svc.Name, "update", []audit.FieldChange{{Field: "subscriber_schema", Old: string(is), New: string(text)}})
	if string(text) == "null" {
		pl.dropSubscriberSchema()
		return
	}
	schema, err := catalog.NewSubscriberSchema(text)
	if err != nil {
		pl.fail("/subscriber_schema", err)
		return
	}
	pl.to.SubscriberSchemas[pl.svc.Number] = schema
	pl.keepSubscriberSchema(text, false)
}

// dropSubscriberSchema takes the schema away, if there is one.
func (pl *plan) dropSubscriberSchema() {
	if pl.to.SubscriberSchemas[pl.svc.Number] != nil {
		delete(pl.to.SubscriberSchemas, pl.svc.Number)
		pl.keepSubscriberSchema([]byte("{}"), true)
	}
}

func (pl *plan) keepSubscriberSchema(text []byte, deleted bool) {
	pl.records = append(pl.records, control.ConfigRecord{Kind: catalog.KindSubscriberSchema, Number: pl.svc.Number, Service: pl.svc.Number, Name: pl.svc.Name, Body: text, Deleted: deleted})
}
