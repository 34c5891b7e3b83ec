package condition

import (
	"slices"
)

// attributesName is under which conditions see the event's context attributes, as
// proposals for CloudEvents have it. A field of that name is written event.ce.
const attributesName = "ce"

// attributesRoot is where ce.name begins.
type attributesRoot struct{}

func (attributesRoot) key() string               { return attributesName }
func (attributesRoot) load(f *frame) (any, bool) { return f.attributeMap(), true }

// attributeMap returns the attributes as CEL's ce, made at most once per event. What the
// event does not have is missing.
func (f *frame) attributeMap() map[string]any {
	if f.attributes != nil {
		return f.attributes
	}
	a := &f.event.Attributes
	m := make(map[string]any, 5+len(a.Extensions))
	for name, raw := range a.Extensions {
		if v, err := decodeData(raw, nil); err == nil {
			m[name] = v
		}
	}
	set := func(name string, v any, known bool) {
		if delete(m, name); known { // an extension cannot stand in for it
			m[name] = v
		}
	}
	set("id", a.ID, a.ID != "")
	set("source", a.Source, a.Source != "")
	set("type", a.Type, a.Type != "")
	set("subject", a.Subject, a.Subject != "")
	set("time", a.Time, !a.Time.IsZero())
	f.attributes = m
	return m
}

// attributeShape is what is known of the attributes: extensions may have any name that
// CloudEvents allows.
var attributeShape = &schemaType{kind: kindMap, open: true, fields: map[string]*schemaType{
	"id": {kind: kindString}, "source": {kind: kindString}, "type": {kind: kindString}, "subject": {kind: kindString},
	"time": {kind: kindTime},
}}

// hiddenAttributes are attributes that tell how the event was sent.
var hiddenAttributes = []string{"specversion", "datacontenttype", "dataschema", "data", "data_base64"}

// isAttribute reports whether an event can have an attribute of that name that
// conditions see (CloudEvents 1.0.2, section 3.1).
func isAttribute(name string) bool {
	for _, c := range []byte(name) {
		if (c < 'a' || c > 'z') && !isDigit(c) {
			return false
		}
	}
	return name != "" && !slices.Contains(hiddenAttributes, name)
}
