package lang

import (
	"slices"
)

// AttributesName is under which conditions see the event's context attributes, as
// proposals for CloudEvents have it. A field of that name is written event.ce.
const AttributesName = "ce"

// attributeShape is what is known of the attributes: extensions may have any name that
// CloudEvents allows.
var attributeShape = &SchemaType{Kind: KindMap, Open: true, Fields: map[string]*SchemaType{
	"id": {Kind: KindString}, "source": {Kind: KindString}, "type": {Kind: KindString}, "subject": {Kind: KindString},
	"time": {Kind: kindTime},
}}

// hiddenAttributes are attributes that tell how the event was sent.
var hiddenAttributes = []string{"specversion", "datacontenttype", "dataschema", "data", "data_base64"}

// isAttribute reports whether an event can have an attribute of that name that
// conditions see (CloudEvents 1.0.2, section 3.1).
func isAttribute(name string) bool {
	for _, c := range []byte(name) {
		if (c < 'a' || c > 'z') && !IsDigit(c) {
			return false
		}
	}
	return name != "" && !slices.Contains(hiddenAttributes, name)
}
