package catalog

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"

	"fanfare.dev/fanfare/internal/catalog/audit"
)

func (d *Diff) Add(kind, name, action string, fields []audit.FieldChange) {
	d.Changes = append(d.Changes, Change{Kind: kind, Name: name, Action: action, Fields: fields})
}

// FieldChanges compares the JSON fields of two values of one type.
func FieldChanges(before, after any) []audit.FieldChange {
	was, is := fieldTexts(before), fieldTexts(after)
	names := slices.Collect(maps.Keys(was))
	for name := range is {
		if _, both := was[name]; !both {
			names = append(names, name)
		}
	}
	var changed []audit.FieldChange
	for _, name := range names {
		if was[name] != is[name] {
			changed = append(changed, audit.FieldChange{Field: name, Old: was[name], New: is[name]})
		}
	}
	slices.SortFunc(changed, func(a, b audit.FieldChange) int { return cmp.Compare(a.Field, b.Field) })
	return changed
}

func fieldTexts(v any) map[string]string {
	b, err := json.Marshal(v)
	if err != nil {
		return nil
	}
	var raw map[string]json.RawMessage
	if json.Unmarshal(b, &raw) != nil {
		return nil
	}
	texts := make(map[string]string, len(raw))
	for name, value := range raw {
		var s string
		if json.Unmarshal(value, &s) != nil {
			s = string(value)
		}
		texts[name] = s
	}
	return texts
}

// A Diff lists the changes of an apply. It is empty if the configuration equals the document.
type Diff struct {
	Changes []Change `json:"changes"`
	Notes   []string `json:"notes,omitempty"` // remarks about members of the document
}

// A Change is one member that an apply changes.
type Change struct {
	Kind   string              `json:"kind"`             // service, channel, worker, template, topic or rule
	Name   string              `json:"name"`             // a rule's is topic/rule
	Action string              `json:"action"`           // create, update or delete
	Fields []audit.FieldChange `json:"fields,omitempty"` // of an update
}
