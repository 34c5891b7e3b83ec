package wire

import "time"

// An AuditEntry is one change: its actor, its object and its time.
type AuditEntry struct {
	At        time.Time        `json:"at"`
	Key       string           `json:"key,omitempty" doc:"id of the key; absent for a person who has signed in with OpenID Connect, and if no key was needed, as for a recipient who follows a link"`
	KeyName   string           `json:"key_name,omitempty" doc:"name of the key at that time; without a key: the person, as name <verified mail address> (issuer), or another actor"`
	RequestID string           `json:"request_id,omitempty" doc:"request id, as in the server log"`
	Service   string           `json:"service,omitempty" doc:"service; absent if the object does not belong to a service"`
	Action    string           `json:"action" doc:"create, update, delete, end, replace, import, rotate, pause, resume, cancel, retry, drop and others"`
	Kind      string           `json:"kind" doc:"kind of the object: service, channel, topic, rule, template, key, subscription, all, broadcast, parked and others"`
	Name      string           `json:"name,omitempty" doc:"name or id of the object"`
	Fields    []FieldChange    `json:"fields,omitempty" doc:"changed fields of the configuration. Bodies, long values and values that may contain an address are reported only as changed"`
	Changed   []string         `json:"changed,omitempty" doc:"changed fields of a person, without their values"`
	Counts    map[string]int64 `json:"counts,omitempty" doc:"number of changed objects, for a bulk change"`
}

// AuditPage is a page of the audit log, the latest first.
type AuditPage struct {
	Audit []AuditEntry `json:"audit" doc:"entries; a page before the last one can have fewer than limit entries, or none"`
	Next  string       `json:"next,omitempty" doc:"the cursor of the next page; absent at the end"`
}
