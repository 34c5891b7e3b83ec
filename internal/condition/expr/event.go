package expr

import (
	"encoding/json"
	"time"
)

// An Event is the input of conditions. The evaluation reads the referenced data and does not retain
// it.
type Event struct {
	Data       json.RawMessage // one JSON value; empty is null
	Attributes Attributes
	Previous   json.RawMessage // the data of the previous event with the same key; empty if there is none
}

// Attributes are the context attributes of the event, with the names of CloudEvents.
type Attributes struct {
	ID, Source, Type, Subject string
	Time                      time.Time
	Extensions                map[string]json.RawMessage // strings, numbers, Booleans
}
