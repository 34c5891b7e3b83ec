package fanfare

import (
	"encoding/json"
	"time"
)

// A KeyRef names a key of a topic: whose event it is, as the symbol of a stock is.
type KeyRef struct {
	Topic  uint32 // number of the topic
	Series uint32 // another one each time the topic takes another field for its key
	Key    string // text of the field
}

// A Last is the state of a key: the last event that had it. Which is the last, the
// sequences decide.
type Last struct {
	Of    KeyRef
	Event EventRef
	At    time.Time // when it was received
	Data  json.RawMessage
}
