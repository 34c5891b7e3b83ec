package fanfare

import "encoding/json"

// A Part is one part of a condition and its result for one event: the whole condition, or an
// expression inside it down to the compared values.
type Part struct {
	Text   string          `json:"text"`            // as CEL; spaces and quotes may differ from the original
	Kind   PartKind        `json:"kind"`            // how the results of Parts are combined
	Result string          `json:"result"`          // true, false or error; value if the part has a value
	Value  json.RawMessage `json:"value,omitempty"` // the value; a long one is a string with its beginning
	Error  string          `json:"error,omitempty"` // why there is no result, such as a missing field or two types that cannot be compared
	Parts  []Part          `json:"parts,omitempty"` // parts of this part, without literals
}

// PartKind is the kind of a Part.
type PartKind string

// The kinds of parts.
const (
	PartAll    PartKind = "all"    // &&: true if all parts are true
	PartAny    PartKind = "any"    // ||: true if one part is true
	PartNot    PartKind = "not"    // !: true if the part is false
	PartChoice PartKind = "choice" // a ? b : c
	PartTest   PartKind = "test"   // a comparison, a call, a Boolean field
	PartValue  PartKind = "value"  // a value that a test uses
)

// The results of a Part.
const (
	PartTrue  = "true"
	PartFalse = "false"
	PartError = "error" // no match, unless || or && decide without this part
	PartFound = "value"
)

// An Explanation says why an event does or does not match a subscription.
type Explanation struct {
	Subscription string          `json:"subscription"`
	Event        string          `json:"event,omitempty"` // evt-…; "" for data that was not published
	Service      string          `json:"service"`
	Topic        string          `json:"topic"` // of the subscription
	Wanted       bool            `json:"wanted"`
	Summary      string          `json:"summary"` // one sentence
	Filter       string          `json:"filter,omitempty"`
	Rule         string          `json:"rule,omitempty"`
	Params       json.RawMessage `json:"params,omitempty"`
	Cadence      string          `json:"cadence,omitempty"`   // when messages are due; "" if immediately
	FoundBy      string          `json:"found_by,omitempty"`  // the part of an event by which an index finds the condition; "" if every event is compared with it
	Checks       []Check         `json:"checks"`              // in the order in which they are decided
	Condition    *Part           `json:"condition,omitempty"` // as the topic defines it now; absent if it was not evaluated
	Delivery     *Delivery       `json:"delivery,omitempty"`  // the resulting delivery, if any
	Defect       string          `json:"defect,omitempty"`    // how the index or the explanation contradicts the independent evaluator; "" if it does not
}

// A Check is one step of the decision.
type Check struct {
	Name   string `json:"check"` // topic, schema, begun, active, condition, audience, recorded, digest, state, template or delivery
	Holds  bool   `json:"holds"`
	Detail string `json:"detail"`
}
