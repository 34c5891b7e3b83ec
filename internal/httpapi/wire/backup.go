package wire

import "time"

// Restored describes the backup that a server was restored from, and the work that is
// uncertain: open deliveries may have been sent after the backup was taken.
type Restored struct {
	RestoredFrom
	Uncertain []Uncertain `json:"uncertain" doc:"broadcasts that were open, and events that were not yet matched"`
	Next      string      `json:"next,omitempty" doc:"cursor of the next page"`
}

// RestoredFrom is Restored without the list.
type RestoredFrom struct {
	Backup     time.Time `json:"backup" doc:"when the backup started"`
	Restored   time.Time `json:"restored" doc:"when it was restored"`
	Version    string    `json:"version" doc:"version of the program that wrote the backup"`
	Broadcasts int       `json:"broadcasts" doc:"number of broadcasts that were open when the backup was taken"`
	Deliveries int64     `json:"deliveries" doc:"number of their deliveries that were not settled at that time"`
	Unmatched  int       `json:"unmatched" doc:"number of events that were accepted but not yet matched at that time"`
}

// Uncertain is a broadcast that was open when the backup was taken.
type Uncertain struct {
	Event     string `json:"event" doc:"public id of the event, evt-..."`
	Service   string `json:"service" doc:"name of the service"`
	Topic     string `json:"topic" doc:"name of the topic; empty for a direct message"`
	Unmatched bool   `json:"unmatched,omitempty" doc:"true: the recipients were not known yet, and the counts are 0"`
	Messages  int64  `json:"messages" doc:"all deliveries of the broadcast"`
	Unsettled int64  `json:"unsettled" doc:"deliveries that were open; they may have been sent since"`
	Deferred  int64  `json:"deferred" doc:"those of them that were between two attempts"`
}
