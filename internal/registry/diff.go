package registry

import (
	"fanfare.dev/fanfare/internal/catalog/audit"
)

// A Diff is what an apply changes, or would change. It is empty when the
// configuration is already as the document says.
type Diff struct {
	Changes []Change `json:"changes"`
	Notes   []string `json:"notes,omitempty"` // what else there is to know of what the document names
}

// A Change is one member that an apply changes.
type Change struct {
	Kind   string              `json:"kind"`             // service, channel, template, topic or rule
	Name   string              `json:"name"`             // a rule's is topic/rule
	Action string              `json:"action"`           // create, update or delete
	Fields []audit.FieldChange `json:"fields,omitempty"` // of an update
}
