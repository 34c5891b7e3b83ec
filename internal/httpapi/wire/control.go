package wire

import (
	"time"

	"fanfare.dev/fanfare"
)

// A Control is a request to pause, resume or cancel the work in a scope.
type Control struct {
	Scope  fanfare.Scope `json:"scope" doc:"kind: all, service, channel or broadcast; name: service, service/channel, or the event id"`
	Reason string        `json:"reason,omitempty" doc:"reason, shown in the status and in traces"`
}

// A Diff lists the changes of an apply, or of its dry run. It is empty if nothing
// differs.
type Diff struct {
	Changes []Change `json:"changes"`
	Notes   []string `json:"notes,omitempty" doc:"further information about the objects in the document, such as a rate that was set by hand"`
}

// A Change is one object that differs.
type Change struct {
	Kind   string        `json:"kind" doc:"service, channel, template, topic or rule"`
	Name   string        `json:"name" doc:"name; for a rule: topic/rule"`
	Action string        `json:"action" doc:"create, update or delete"`
	Fields []FieldChange `json:"fields,omitempty" doc:"changed fields, for an update"`
}

// A FieldChange is one field before and after, as text.
type FieldChange struct {
	Field string `json:"field"`
	Old   string `json:"old"`
	New   string `json:"new"`
}

// An Expiry is the time at which the messages of a broadcast are removed from mailboxes.
type Expiry struct {
	At *time.Time `json:"at" doc:"the time (RFC 3339); null: the messages do not expire"`
}
