package wire

import "time"

// An AuditEntry is one change: who did what to which thing, and when.
type AuditEntry struct {
	At        time.Time        `json:"at"`
	Key       string           `json:"key,omitempty" doc:"id of the key; absent where none was needed, as for a recipient with a link"`
	KeyName   string           `json:"key_name,omitempty" doc:"as it was then"`
	RequestID string           `json:"request_id,omitempty" doc:"as in the server's log"`
	Service   string           `json:"service,omitempty" doc:"absent for what belongs to none"`
	Action    string           `json:"action" doc:"create, update, delete, end, replace, import, rotate, pause, resume, cancel, retry, drop and others"`
	Kind      string           `json:"kind" doc:"of what was changed: service, channel, topic, rule, template, key, subscription, all, broadcast, parked and others"`
	Name      string           `json:"name,omitempty" doc:"its name or id"`
	Fields    []FieldChange    `json:"fields,omitempty" doc:"of the configuration: what changed. Bodies, long values and those that may hold an address are only called changed"`
	Changed   []string         `json:"changed,omitempty" doc:"of people: which fields changed, without their values"`
	Counts    map[string]int64 `json:"counts,omitempty" doc:"of a change of many: how many"`
}

// AuditPage is a part of the audit, the latest first.
type AuditPage struct {
	Audit []AuditEntry `json:"audit" doc:"can be short of limit, or empty, before the last page"`
	Next  string       `json:"next,omitempty" doc:"the cursor of the next page; absent at the end"`
}
