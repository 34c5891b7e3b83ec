package wire

import (
	"encoding/json"
	"time"
)

// A KeyState is the last event of a key, with which the next one is compared.
type KeyState struct {
	Key   string          `json:"key" doc:"value of the key field of the topic"`
	Event string          `json:"event" doc:"id of the last event with this key, evt-..."`
	At    time.Time       `json:"at" doc:"when the event was received"`
	Data  json.RawMessage `json:"data" doc:"data of the event"`
}

// StatePage is a page of the states of a topic, by key.
type StatePage struct {
	Keys   int        `json:"keys" doc:"number of keys that have a state"`
	Full   int64      `json:"full,omitempty" doc:"number of events since the server started whose state was not stored because the topic had reached its maximum"`
	States []KeyState `json:"states" doc:"states, by key"`
	Next   string     `json:"next,omitempty" doc:"the cursor of the next page; absent at the end"`
}
