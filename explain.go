package fanfare

import "encoding/json"

// A Part is one part of a condition and what it came to for one event: the whole
// condition, or what stands inside it down to the values that are compared.
type Part struct {
	Text   string          `json:"text"`            // as CEL; spaces and quotes may be others than were written
	Kind   PartKind        `json:"kind"`            // how Parts make Result
	Result string          `json:"result"`          // true, false or error; value where a value was found
	Value  json.RawMessage `json:"value,omitempty"` // of a value; a long one is a string with its beginning
	Error  string          `json:"error,omitempty"` // why there is no result: a field that is missing, unlike things compared
	Parts  []Part          `json:"parts,omitempty"` // what it is made of, literals left out
}

// PartKind says what a Part is.
type PartKind string

// The kinds of parts.
const (
	PartAll    PartKind = "all"    // &&: true if all parts are
	PartAny    PartKind = "any"    // ||: true if one part is
	PartNot    PartKind = "not"    // !: true if its part is false
	PartChoice PartKind = "choice" // a ? b : c
	PartTest   PartKind = "test"   // a comparison, a call, a field that is true or false
	PartValue  PartKind = "value"  // what a test looks at
)

// The results of a Part.
const (
	PartTrue  = "true"
	PartFalse = "false"
	PartError = "error" // no match, whatever the rest says, unless || or && decide without it
	PartFound = "value"
)

// An Explanation says why an event is, was or would be for a subscription or not.
type Explanation struct {
	Subscription string          `json:"subscription"`
	Event        string          `json:"event,omitempty"` // evt-…; "" for data that were not published
	Service      string          `json:"service"`
	Topic        string          `json:"topic"` // of the subscription
	Wanted       bool            `json:"wanted"`
	Summary      string          `json:"summary"` // in one sentence
	Filter       string          `json:"filter,omitempty"`
	Rule         string          `json:"rule,omitempty"`
	Params       json.RawMessage `json:"params,omitempty"`
	Cadence      string          `json:"cadence,omitempty"`   // when messages are due; "": at once
	FoundBy      string          `json:"found_by,omitempty"`  // what of an event leads to the condition; "": every event is held against it
	Checks       []Check         `json:"checks"`              // in the order in which they decide
	Condition    *Part           `json:"condition,omitempty"` // as the topic defines it now; absent where it was not asked
	Delivery     *Delivery       `json:"delivery,omitempty"`  // what came of it, where there was one
	Defect       string          `json:"defect,omitempty"`    // how the matching index, or the explanation, contradicts the independent evaluator; "": it does not
}

// A Check is one thing that decides.
type Check struct {
	Name   string `json:"check"` // topic, schema, begun, active, condition, audience, recorded, digest, state, template or delivery
	Holds  bool   `json:"holds"`
	Detail string `json:"detail"`
}
