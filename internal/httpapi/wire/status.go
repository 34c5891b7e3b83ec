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
	Reason     string    `json:"reason,omitempty" doc:"reason why the server is not ready"`

	Bus            Bus                 `json:"bus"`
	Deliveries     Deliveries          `json:"deliveries"`
	Broadcasts     []fanfare.Broadcast `json:"broadcasts" doc:"those that are not completed"`
	Channels       []Channel           `json:"channels"`
	Services       []ServiceLimits     `json:"services,omitempty" doc:"that have limits for all their channels together"`
	Paused         []Paused            `json:"paused"`
	Gathered       []Gathered          `json:"gathered,omitempty" doc:"digests with waiting events, the next due first; at most 100"`
	Parked         int                 `json:"parked" doc:"events and batches that failed too often and wait for an operator"`
	IndexLagEvents int64               `json:"index_lag_events" doc:"events whose deliveries cannot be found by person yet"`
	Untold         int64               `json:"untold,omitempty" doc:"outcomes of deliveries, and what people did, that services are to be told of and are not yet; absent for keys of one service"`
	MatchCheck     *MatchCheck         `json:"match_check,omitempty" doc:"how the answers of the matching index are checked; absent for keys of one service"`
	StateKeys      int                 `json:"state_keys" doc:"keys of topics whose last event is known"`
	StatesFull     int64               `json:"states_full,omitempty" doc:"events since the server started that left no state, because their topic has as many as it may"`
	Suppressions   int64               `json:"suppressions,omitempty" doc:"addresses that nobody writes to, of all services together; absent for keys of one service"`
	DiskFreeBytes  int64               `json:"disk_free_bytes"`

	TemplateFaults []TemplateFault `json:"template_faults,omitempty" doc:"for how many recipients templates failed, and which variables events lacked that no schema knows, since the start of the server; at most 200"`

	Inbound *Inbound `json:"inbound,omitempty" doc:"the server that receives bounces and unsubscribe mails; absent if there is none, and for keys of one service"`

	Database  *Database `json:"database,omitempty" doc:"the PostgreSQL database that stores all data; absent if the data directory does, and for keys of one service"`
	NextStart string    `json:"next_start,omitempty" doc:"setting that is required before the next start, after a move to another database"`

	Capture         string `json:"capture,omitempty" doc:"the destination of all messages in place of their relays and receivers; absent if they are sent"`
	AllowRecipients int    `json:"allow_recipients,omitempty" doc:"number of addresses, domains and hosts to which messages are really sent; absent if that is everybody, or with capture nobody"`

	Restored *RestoredFrom `json:"restored,omitempty" doc:"the backup that the server was restored from, while everything is still paused"`
}

// A MatchCheck says how the answers of the matching index are checked by an independent
// evaluator. Counts are since the start of the server.
type MatchCheck struct {
	Share          string                 `json:"share" doc:"of the processor time that it may take, such as 3%, or unlimited"`
	Events         int64                  `json:"events" doc:"that were matched"`
	Reported       int64                  `json:"reported" doc:"checks of conditions that the index took for true"`
	Unreported     int64                  `json:"unreported" doc:"checks of other conditions"`
	Undecided      int64                  `json:"undecided" doc:"of these checks, those in which the evaluator could not decide"`
	Seconds        float64                `json:"seconds" doc:"that the checks took"`
	Contradictions int64                  `json:"contradictions" doc:"conditions about which the index was wrong: a defect of Fanfare"`
	Quarantined    []QuarantinedCondition `json:"quarantined,omitempty" doc:"conditions that are evaluated without the index until they are changed, because it was wrong about them"`
}

// A QuarantinedCondition is a condition about which the matching index was wrong.
type QuarantinedCondition struct {
	Service      string    `json:"service,omitempty"`
	Topic        string    `json:"topic,omitempty" doc:"absent if the topic was deleted"`
	Filter       string    `json:"filter,omitempty" doc:"the condition, of all subscriptions that have it"`
	Subscription string    `json:"subscription,omitempty" doc:"or the subscription whose rule and params it is"`
	Since        time.Time `json:"since" doc:"when it was found"`
	Event        string    `json:"event" doc:"at which it was found"`
	Index        string    `json:"index" doc:"result of the index: true, or not true"`
	Evaluator    string    `json:"evaluator" doc:"result of the evaluator: true, false or error"`
}

// A TemplateFault is a place at which a version of a template failed for recipients, or
// a variable that an event of a topic without a schema lacked.
type TemplateFault struct {
	Service    string    `json:"service" doc:"that has the template"`
	Template   string    `json:"template" doc:"its name"`
	Version    int       `json:"version" doc:"of the template"`
	At         string    `json:"at,omitempty" doc:"part, line and the variables that it reads"`
	Recipients int64     `json:"recipients,omitempty" doc:"number of recipients for whom it failed"`
	Absent     string    `json:"absent,omitempty" doc:"the variable that was left empty"`
	Since      time.Time `json:"since" doc:"time of the first failure"`
	Last       time.Time `json:"last" doc:"time of the last failure"`
	Replaced   bool      `json:"replaced,omitempty" doc:"another version is published now"`
}

// Inbound is the mail server at which bounces come in. Counts are since
// the start of the server.
type Inbound struct {
	Listen       string `json:"listen" doc:"host:port"`
	Open         int    `json:"open" doc:"connections now"`
	Taken        int64  `json:"taken" doc:"messages for which it answered"`
	Bounces      int64  `json:"bounces" doc:"of these, for the return address of a message"`
	Unsubscribes int64  `json:"unsubscribes" doc:"of these, wishes to unsubscribe"`
	Kept         int64  `json:"kept" doc:"of these, for postmaster or abuse, in the folder postmaster of the data directory"`
	NotNow       int64  `json:"not_now" doc:"messages that could not be kept; their senders come again"`
	Refused      int64  `json:"refused" doc:"recipients that do not exist"`
}

// A Database is a PostgreSQL, and the connections that the server has to it.
type Database struct {
	Where       string     `json:"where" doc:"user, host, port, database and a schema that is not the default, without a password"`
	Version     string     `json:"version" doc:"of PostgreSQL, when the server started"`
	Away        *time.Time `json:"away_since,omitempty" doc:"since when it cannot be reached; absent while it can"`
	Error       string     `json:"error,omitempty" doc:"reason why it cannot be reached"`
	Connections int        `json:"connections" doc:"connections that are open now"`
	Busy        int        `json:"busy" doc:"of these, at work"`
	Most        int        `json:"most" doc:"maximum number of open connections"`
	Retries     int64      `json:"retries" doc:"statements and transactions that were run again since the start, after a conflict or a lost connection"`
	Losses      int64      `json:"losses" doc:"connections that were lost while they were used, since the start"`
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
	State         string  `json:"state" doc:"idle, running, paused, suspended, or waiting while the database is away"`
	Connections   int     `json:"connections" doc:"connections that are open now"`
	RatePerSecond float64 `json:"rate_per_second" doc:"over the last ten seconds; of a channel that waits, over the last one"`
	RateLimit     string  `json:"rate_limit" doc:"how many messages may leave, such as 30/s, or unlimited"`
	RateSetByHand bool    `json:"rate_set_by_hand,omitempty" doc:"in place of the one that is configured"`
	LastError     string  `json:"last_error,omitempty"`

	DailyQuota *QuotaStatus `json:"daily_quota,omitempty" doc:"of messages; absent: without bound"`

	Relays []RelayStatus `json:"relays,omitempty" doc:"its next hops"`

	Problems []ChannelProblem `json:"problems,omitempty" doc:"keys, passwords and secrets that cannot be used now"`
}

// A ChannelProblem is a key, a password or a secret of a channel that cannot be used now.
type ChannelProblem struct {
	Kind     string `json:"kind" doc:"dkim_key: it cannot be read; dkim_record: it does not sign before its record is in the DNS; password, secret or receipts: it cannot be read"`
	Domain   string `json:"domain,omitempty" doc:"of a DKIM key"`
	Selector string `json:"selector,omitempty" doc:"of a DKIM key"`
	File     string `json:"file,omitempty" doc:"where it is read from, where that is a file"`
	Error    string `json:"error" doc:"what is wrong, and what that leads to"`
	Hint     string `json:"hint" doc:"remedy"`
}

// ServiceLimits are what all channels of a service send together at most.
type ServiceLimits struct {
	Service       string       `json:"service"`
	RateLimit     string       `json:"rate_limit" doc:"how many messages may leave, such as 30/s, or unlimited"`
	RatePerSecond float64      `json:"rate_per_second" doc:"of all its channels, over the last ten seconds"`
	DailyQuota    *QuotaStatus `json:"daily_quota,omitempty" doc:"of messages; absent: without bound"`
}

// A QuotaStatus is how many messages may leave on a day, and how many of today's
// are used.
type QuotaStatus struct {
	Messages int64     `json:"messages" doc:"that may leave on a day"`
	Zone     string    `json:"zone,omitempty" doc:"time zone in which days begin; default: UTC"`
	Used     int64     `json:"used" doc:"of today's: those that left, and after a kill up to a hundredth more (1000 at most)"`
	Ends     time.Time `json:"ends" doc:"when the next day begins"`
}

// A RelayStatus is a next hop of a channel, as it is doing.
type RelayStatus struct {
	Name        string  `json:"name" doc:"host:port, or the name that the configuration gives it"`
	State       string  `json:"state" doc:"up; doubted: its last connection was lost; down: one connection at a time tries it; drained: by an operator; unused: its weight is 0"`
	Weight      int     `json:"weight" doc:"as configured"`
	Share       float64 `json:"share" doc:"of the channel's connections that it may have now, 0 to 1: by its weight, less while it fails or is slow"`
	Connections int     `json:"connections" doc:"connections that are open now"`
	Accepted    int64   `json:"accepted" doc:"messages that it took since the server started"`
	Errors      int64   `json:"errors" doc:"messages lost or refused for reasons of its own, and connections lost, since the server started"`
	P50Millis   float64 `json:"p50_millis" doc:"how long a message takes it at most, for half of those of the last half minute"`
	P99Millis   float64 `json:"p99_millis" doc:"the same for 99 of 100"`
	LastError   string  `json:"last_error,omitempty"`
}

// Gathered is what waits for a digest.
type Gathered struct {
	Service    string    `json:"service"`
	Cadence    string    `json:"cadence" doc:"such as daily 08:00"`
	Zone       string    `json:"time_zone,omitempty" doc:"on whose clock"`
	Due        time.Time `json:"due" doc:"when the digest is sent"`
	Recipients int64     `json:"recipients" doc:"of all its events, one by one, as they were matched; up to ten seconds ago"`
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

	Gathered []fanfare.Gathering `json:"gathered,omitempty" doc:"of one recipient of an event: the digests for which it waits"`
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
