package registry

import (
	"encoding/json"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/match"
)

// Conditions is the match index as the registry fills it. One goroutine changes
// it, any number check against it. Package match says what each method promises.
type Conditions interface {
	Check(def match.Definition) error
	Define(key match.Key, def match.Definition) error
	Fits(key match.Key, def match.Definition) error
	PriceFilter(key match.Key, filter string) (fanfare.Cost, error)
	PriceParams(key match.Key, rule string, params json.RawMessage) (fanfare.Cost, error)
	Load(key match.Key) (nanos int64)
	Has(key match.Key, filter string) bool
	Add(key match.Key, entries []match.Entry) error
	Remove(key match.Key, place fanfare.Place)
	Len(key match.Key) int
}
