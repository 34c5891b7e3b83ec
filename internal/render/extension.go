package render

import "encoding/json"

// extensions are the event's further attributes as templates see them.
func extensions(of map[string]json.RawMessage) map[string]any {
	values := make(map[string]any, len(of))
	for name, raw := range of {
		if v, err := decode(raw); err == nil { // intake lets only JSON in
			values[name] = v
		}
	}
	return values
}
