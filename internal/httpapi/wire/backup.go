package wire

import "time"

// Restored says which backup a server was restored from, and what was
// uncertain then: what was open may have left after the backup was taken.
type Restored struct {
	RestoredFrom
	Uncertain []Uncertain `json:"uncertain" doc:"the broadcasts that were open, and the events that were not matched"`
	Next      string      `json:"next,omitempty" doc:"cursor of the next page"`
}

// RestoredFrom is what Restored says without the list.
type RestoredFrom struct {
	Backup     time.Time `json:"backup" doc:"when the backup was begun"`
	Restored   time.Time `json:"restored" doc:"when it was restored"`
	Version    string    `json:"version" doc:"of the program that wrote the backup"`
	Broadcasts int       `json:"broadcasts" doc:"broadcasts that were open at the backup"`
	Deliveries int64     `json:"deliveries" doc:"deliveries of these that were not settled then"`
	Unmatched  int       `json:"unmatched" doc:"events that were accepted and not matched then"`
}

// Uncertain is a broadcast that was open at the backup.
type Uncertain struct {
	Event     string `json:"event" doc:"public id of the event, evt-..."`
	Service   string `json:"service" doc:"name of the service"`
	Topic     string `json:"topic" doc:"name of the topic; empty of a direct send"`
	Unmatched bool   `json:"unmatched,omitempty" doc:"it was not known yet who is to get it; the counts are 0"`
	Messages  int64  `json:"messages" doc:"all deliveries of the broadcast"`
	Unsettled int64  `json:"unsettled" doc:"those that were open: they may have left since"`
	Deferred  int64  `json:"deferred" doc:"of these, those between two attempts"`
}
