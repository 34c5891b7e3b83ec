package lang

import (
	"slices"
)

// AttributesName is the variable that holds the event's context attributes, as proposals for
// CloudEvents name it. A field with this name is written event.ce.
const AttributesName = "ce"

// attributeShape is the type of the attributes: extensions may have any name that CloudEvents
// allows.
var attributeShape = &SchemaType{Kind: KindMap, Open: true, Fields: map[string]*SchemaType{
	"id": {Kind: KindString}, "source": {Kind: KindString}, "type": {Kind: KindString}, "subject": {Kind: KindString},
	"time": {Kind: kindTime},
}}

// hiddenAttributes are the attributes that describe the transport of the event. Conditions do not
// see them.
var hiddenAttributes = []string{"specversion", "datacontenttype", "dataschema", "data", "data_base64"}

// isAttribute reports whether an event can have an attribute with that name that conditions see
// (CloudEvents 1.0.2, section 3.1).
func isAttribute(name string) bool {
	for _, c := range []byte(name) {
		if (c < 'a' || c > 'z') && !IsDigit(c) {
			return false
		}
	}
	return name != "" && !slices.Contains(hiddenAttributes, name)
}
