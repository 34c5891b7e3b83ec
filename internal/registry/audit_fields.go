package registry

import (
	"fanfare.dev/fanfare/internal/catalog/audit"
)

// maxAuditValueBytes is how much of a value the audit shows; of a longer one only
// that it changed.
const maxAuditValueBytes = 200

// unshown are the fields of which the audit says only that they changed: texts,
// and what may hold an address.
var unshown = map[string]bool{
	"subject": true, "text": true, "html": true, "json": true, "markdown": true, "page": true, "partials": true, "locales": true, "devices": true, // of templates
	"from": true, "sender": true, "reply_to": true, "username": true, "relays": true, // of channels
}

const changed = "changed"

// shortened is what the audit shows of the fields of c.
func shortened(c Change) []audit.FieldChange {
	var fields []audit.FieldChange
	for _, f := range c.Fields {
		if unshown[f.Field] || len(f.Old) > maxAuditValueBytes || len(f.New) > maxAuditValueBytes {
			f.Old, f.New = "", changed
		}
		fields = append(fields, f)
	}
	return fields
}
