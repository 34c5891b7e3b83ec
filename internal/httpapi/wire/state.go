package wire

import (
	"encoding/json"
	"time"
)

// A KeyState is the last event of a key: what the next one is compared with.
type KeyState struct {
	Key   string          `json:"key" doc:"text of the field that the topic names as its key"`
	Event string          `json:"event" doc:"evt-..., the last event of the key"`
	At    time.Time       `json:"at" doc:"when it was received"`
	Data  json.RawMessage `json:"data" doc:"of the event"`
}

// StatePage is a part of the states of a topic, by key.
type StatePage struct {
	Keys   int        `json:"keys" doc:"how many keys have a state"`
	Full   int64      `json:"full,omitempty" doc:"events since the server started that left no state, because the topic has as many as it may"`
	States []KeyState `json:"states" doc:"by key"`
	Next   string     `json:"next,omitempty" doc:"the cursor of the next page; absent at the end"`
}
