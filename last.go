package fanfare

import (
	"encoding/json"
	"time"
)

// A KeyRef names a key of a topic: the subject of its events, such as the symbol of a stock.
type KeyRef struct {
	Topic  uint32 // number of the topic
	Series uint32 // changes when the topic gets another key field
	Key    string // value of the field
}

// A Last is the state of a key: the event with the highest sequence.
type Last struct {
	Of    KeyRef
	Event EventRef
	At    time.Time // when it was received
	Data  json.RawMessage
}
