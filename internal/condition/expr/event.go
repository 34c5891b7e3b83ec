package expr

import (
	"encoding/json"
	"time"
)

// An Event is what conditions are asked about. What it refers to is only read, and
// not kept.
type Event struct {
	Data       json.RawMessage // one JSON value; none is null
	Attributes Attributes
	Previous   json.RawMessage // the data of the last event of the same key; empty if there was none
}

// Attributes are the context attributes of the event, in the words of CloudEvents.
type Attributes struct {
	ID, Source, Type, Subject string
	Time                      time.Time
	Extensions                map[string]json.RawMessage // strings, numbers, Booleans
}
