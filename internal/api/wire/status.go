package wire

import (
	"time"

	"fanfare.dev/fanfare"
)

// A Status says how the server is doing. A key of one service sees only what
// is its own, and totals.
type Status struct {
	Version    string    `json:"version"`
	Durability string    `json:"durability" doc:"fsync or relaxed"`
	Started    time.Time `json:"started"`
	Ready      bool      `json:"ready"`
	Reason     string    `json:"reason,omitempty" doc:"why it is not ready"`

	Bus            Bus                 `json:"bus"`
	Deliveries     Deliveries          `json:"deliveries"`
	Broadcasts     []fanfare.Broadcast `json:"broadcasts" doc:"those that are not completed"`
	Channels       []Channel           `json:"channels"`
	Paused         []Paused            `json:"paused"`
	Parked         int                 `json:"parked" doc:"events and batches that failed too often and wait for an operator"`
	IndexLagEvents int64               `json:"index_lag_events" doc:"events whose deliveries cannot be found by person yet"`
	DiskFreeBytes  int64               `json:"disk_free_bytes"`

	Restored *RestoredFrom `json:"restored,omitempty" doc:"the backup that the server was restored from, while everything is still paused"`
}

// Bus is what waits at the two durable hops.
type Bus struct {
	EventsPending  int64 `json:"events_pending" doc:"groups of events that are kept and not matched yet: what arrives together is one group"`
	BatchesPending int64 `json:"batches_pending"`
}

// Deliveries is what is under way.
type Deliveries struct {
	Pending           int64   `json:"pending" doc:"in a manifest, nothing tried yet"`
	Deferred          int64   `json:"deferred" doc:"between attempts"`
	AcceptedPerSecond float64 `json:"accepted_per_second" doc:"over the last ten seconds"`
	FailedPerSecond   float64 `json:"failed_per_second" doc:"over the last ten seconds"`
}

// A Channel is a way out, as it is doing.
type Channel struct {
	Service       string  `json:"service"`
	Name          string  `json:"name"`
	Driver        string  `json:"driver"`
	State         string  `json:"state" doc:"idle, running, paused or suspended"`
	Connections   int     `json:"connections" doc:"open now"`
	RatePerSecond float64 `json:"rate_per_second" doc:"over the last ten seconds"`
	LastError     string  `json:"last_error,omitempty"`
}

// Paused is something that an operator, or a broken channel, has stopped.
type Paused struct {
	Scope  fanfare.Scope `json:"scope"`
	Reason string        `json:"reason,omitempty"`
	Since  time.Time     `json:"since"`
}

// DeliveryPage is a part of the deliveries of an event.
type DeliveryPage struct {
	Deliveries []fanfare.Delivery `json:"deliveries"`
	Next       string             `json:"next,omitempty" doc:"the cursor of the next page; absent at the end"`
}

// Broadcasts is a part of the broadcasts, the newest first.
type Broadcasts struct {
	Broadcasts []fanfare.Broadcast `json:"broadcasts" doc:"the broadcasts of this page, without the events' data"`
	Next       string              `json:"next,omitempty" doc:"the cursor of the next page; absent at the end"`
}

// Events is a part of the events, the newest first.
type Events struct {
	Events []fanfare.Broadcast `json:"events" doc:"the events of this page and what became of them, without their data"`
	Next   string              `json:"next,omitempty" doc:"the cursor of the next page; absent at the end"`
}

// ParkedList lists parked work, the oldest first.
type ParkedList struct {
	Parked []fanfare.Parked `json:"parked" doc:"the parked work of this page"`
	Next   string           `json:"next,omitempty" doc:"the cursor of the next page; absent at the end"`
}
