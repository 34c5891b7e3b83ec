package wire

import (
	"time"

	"fanfare.dev/fanfare"
)

// Rates are values of the server over time.
type Rates struct {
	Since       time.Time `json:"since" doc:"start of the first step"`
	Until       time.Time `json:"until" doc:"end of the period"`
	StepSeconds int64     `json:"step_seconds" doc:"length of a step"`
	Rates       []Rate    `json:"rates" doc:"values of the steps, the oldest first; a step of which nothing is known, because the server did not run, is absent"`
}

// A Rate has the values of one step: the sums of counts, and the maxima of amounts, which are measured at the end of each minute.
type Rate struct {
	At      time.Time `json:"at" doc:"start of the step"`
	Minutes int       `json:"minutes" doc:"number of minutes of the step whose values are known; divide counts by it for values per minute"`

	Events   LaneCounts     `json:"events" doc:"sum: number of accepted events and messages, by lane"`
	Outcomes fanfare.Counts `json:"outcomes" doc:"sum: number of recorded outcomes, by state; states without outcomes are omitted. A delivery whose state changes twice, such as from deferred to accepted, counts in both"`

	Pending        int64      `json:"pending" doc:"maximum: number of deliveries that have not been tried yet"`
	Deferred       int64      `json:"deferred" doc:"maximum: number of deliveries between two attempts"`
	EventsPending  LaneCounts `json:"events_pending" doc:"maximum: number of groups of events that are not matched yet, by lane"`
	BatchesPending int64      `json:"batches_pending" doc:"maximum: number of batches of deliveries that wait for their channel"`
	BroadcastsOpen int64      `json:"broadcasts_open" doc:"maximum: number of broadcasts that are not completed"`
}

// LaneCounts are counts by lane.
type LaneCounts struct {
	Urgent int64 `json:"urgent"`
	Normal int64 `json:"normal"`
	Bulk   int64 `json:"bulk"`
}
