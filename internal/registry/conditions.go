package registry

import (
	"encoding/json"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/condition"
)

// Conditions is the match index as the registry fills it. One goroutine changes
// it, any number check against it. Package match says what each method promises.
type Conditions interface {
	Check(def condition.Definition) error
	Define(key condition.Key, def condition.Definition) error
	CheckDefine(key condition.Key, def condition.Definition) error
	FilterCost(key condition.Key, filter string) (fanfare.Cost, error)
	ParamsCost(key condition.Key, rule string, params json.RawMessage) (fanfare.Cost, error)
	UnindexedCost(key condition.Key) (nanos int64)
	HasFilter(key condition.Key, filter string) bool
	Add(key condition.Key, entries []condition.Entry) error
	Remove(key condition.Key, place fanfare.RowID)
	Len(key condition.Key) int
}
