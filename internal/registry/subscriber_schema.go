package registry

import (
	"bytes"
	"encoding/json"
	"strings"

	"fanfare.dev/fanfare/internal/catalog/audit"
	"fanfare.dev/fanfare/internal/store/control"

	"fanfare.dev/fanfare/internal/catalog/schema"
	"fanfare.dev/fanfare/internal/inputerror"

	"fanfare.dev/fanfare"
)

// A subscriberSchema is what the attributes of a service's subscribers have to
// be like. It is asked when attributes are put; those that were put before it
// stay as they are.
type subscriberSchema struct {
	text  json.RawMessage // JSON Schema
	check func(json.RawMessage) error
}

// subscriberSchemas keeps the schemas of services by their numbers.
type subscriberSchemas map[uint32]*subscriberSchema

func newSubscriberSchema(text json.RawMessage) (*subscriberSchema, error) {
	check, err := schema.Compile(text)
	if err != nil {
		return nil, err
	}
	return &subscriberSchema{text, check}, nil
}

// checkAttributes checks attributes, of which none are an empty object.
func (s subscriberSchemas) checkAttributes(service uint32, attributes json.RawMessage) error {
	schema := s[service]
	if schema == nil {
		return nil
	}
	if len(attributes) == 0 {
		attributes = json.RawMessage("{}")
	}
	err := schema.check(attributes)
	if err == nil {
		return nil
	}
	wrong := inputerror.WithPrefix("", err)
	for _, e := range append([]*fanfare.Error{wrong}, wrong.Details...) {
		e.Pointer = "/attributes" + strings.TrimPrefix(e.Pointer, "/data")
	}
	return wrong
}

// loadSubscriberSchema puts a kept schema into s.
func loadSubscriberSchema(s *snapshot, c *control.ConfigRecord) error {
	delete(s.subscribers, c.Service)
	if c.Deleted {
		return nil
	}
	schema, err := newSubscriberSchema(c.Body)
	if err == nil {
		s.subscribers[c.Service] = schema
	}
	return err
}

// subscriberSchema takes over the schema of the document; null takes it away.
func (pl *plan) subscriberSchema() {
	text := pl.doc.SubscriberSchema
	if len(text) == 0 {
		return
	}
	is := []byte("null")
	if old := pl.to.subscribers[pl.svc.number]; old != nil {
		is = old.text
	}
	if bytes.Equal(text, is) {
		return
	}
	pl.diff.add(kindService, pl.svc.name, "update", []audit.FieldChange{{Field: "subscriber_schema", Old: string(is), New: string(text)}})
	if string(text) == "null" {
		pl.dropSubscriberSchema()
		return
	}
	schema, err := newSubscriberSchema(text)
	if err != nil {
		pl.fail("/subscriber_schema", err)
		return
	}
	pl.to.subscribers[pl.svc.number] = schema
	pl.keepSubscriberSchema(text, false)
}

// dropSubscriberSchema takes the schema away, if there is one.
func (pl *plan) dropSubscriberSchema() {
	if pl.to.subscribers[pl.svc.number] != nil {
		delete(pl.to.subscribers, pl.svc.number)
		pl.keepSubscriberSchema([]byte("{}"), true)
	}
}

func (pl *plan) keepSubscriberSchema(text []byte, deleted bool) {
	pl.records = append(pl.records, control.ConfigRecord{Kind: kindSubscriberSchema, Number: pl.svc.number, Service: pl.svc.number, Name: pl.svc.name, Body: text, Deleted: deleted})
}
