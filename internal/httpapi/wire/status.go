package wire

import (
	"time"

	"fanfare.dev/fanfare"
)

// A Status is the state of the server. A key of one service sees only its own
// service, and totals.
type Status struct {
	Version    string    `json:"version"`
	Durability string    `json:"durability" doc:"fsync or relaxed"`
	Started    time.Time `json:"started"`
	Ready      bool      `json:"ready"`
	Reason     string    `json:"reason,omitempty" doc:"why the server is not ready"`

	Bus            Bus                 `json:"bus"`
	Deliveries     Deliveries          `json:"deliveries"`
	Broadcasts     []fanfare.Broadcast `json:"broadcasts" doc:"broadcasts that are not completed"`
	Channels       []Channel           `json:"channels"`
	Services       []ServiceLimits     `json:"services,omitempty" doc:"services with limits for all their channels together"`
	Workers        []WorkerStatus      `json:"workers,omitempty" doc:"workers that have sessions or instances"`
	Paused         []Paused            `json:"paused"`
	Gathered       []Gathered          `json:"gathered,omitempty" doc:"digests with waiting events, the next due first; at most 100"`
	Parked         int                 `json:"parked" doc:"number of events and batches that failed repeatedly and wait for an operator"`
	IndexLagEvents int64               `json:"index_lag_events" doc:"number of events whose deliveries cannot be found by subscriber yet"`
	Untold         int64               `json:"untold,omitempty" doc:"number of delivery outcomes and subscriber actions of which services have not been notified yet; absent for keys of one service"`
	MatchCheck     *MatchCheck         `json:"match_check,omitempty" doc:"how the results of the matching index are checked; absent for keys of one service"`
	StateKeys      int                 `json:"state_keys" doc:"number of topic keys whose last event is known"`
	StatesFull     int64               `json:"states_full,omitempty" doc:"number of events since the server started whose state was not stored because their topic had reached its maximum"`
	Suppressions   int64               `json:"suppressions,omitempty" doc:"number of suppressed addresses of all services; absent for keys of one service"`
	DiskFreeBytes  int64               `json:"disk_free_bytes"`

	TemplateFaults []TemplateFault `json:"template_faults,omitempty" doc:"template failures, and variables that were missing in events of topics without a schema, since the server started; at most 200"`

	Inbound *Inbound `json:"inbound,omitempty" doc:"mail server for bounces and unsubscribe emails; absent if there is none, and for keys of one service"`

	Cluster *Cluster `json:"cluster,omitempty" doc:"nodes of the cluster; absent for a server that is not a node of a cluster, and for keys of one service"`

	Database  *Database `json:"database,omitempty" doc:"PostgreSQL database that stores all data; absent if the data is stored in the data directory, and for keys of one service"`
	NextStart string    `json:"next_start,omitempty" doc:"setting that is required for the next start, after a move to another database"`

	Capture         string `json:"capture,omitempty" doc:"destination of all messages, instead of their relays and receivers; absent if messages are delivered normally"`
	AllowRecipients int    `json:"allow_recipients,omitempty" doc:"number of addresses, domains and hosts to which messages are actually sent; absent: no restriction or, with capture, none"`

	Restored *RestoredFrom `json:"restored,omitempty" doc:"backup from which the server was restored; absent once work has been resumed"`
}

// A MatchCheck reports how an independent evaluator checks the results of the matching
// index. Counts cover the time since the server started.
type MatchCheck struct {
	Share          string                 `json:"share" doc:"maximum share of processor time, such as 3%, or unlimited"`
	Events         int64                  `json:"events" doc:"number of matched events"`
	Reported       int64                  `json:"reported" doc:"number of checked conditions that the index reported as true"`
	Unreported     int64                  `json:"unreported" doc:"number of checked conditions that the index did not report as true"`
	Undecided      int64                  `json:"undecided" doc:"number of these checks in which the evaluator could not decide"`
	Seconds        float64                `json:"seconds" doc:"time spent on the checks, in seconds"`
	Contradictions int64                  `json:"contradictions" doc:"number of conditions for which the index gave a wrong result: a bug in Fanfare"`
	Quarantined    []QuarantinedCondition `json:"quarantined,omitempty" doc:"conditions that are evaluated without the index until they are changed, because the index gave wrong results for them"`
}

// A QuarantinedCondition is a condition for which the matching index was wrong.
type QuarantinedCondition struct {
	Service      string    `json:"service,omitempty"`
	Topic        string    `json:"topic,omitempty" doc:"absent if the topic was deleted"`
	Filter       string    `json:"filter,omitempty" doc:"condition of all subscriptions with this filter"`
	Subscription string    `json:"subscription,omitempty" doc:"instead of filter: the subscription whose rule and params are affected"`
	Since        time.Time `json:"since" doc:"when the error was found"`
	Event        string    `json:"event" doc:"event for which the error was found"`
	Index        string    `json:"index" doc:"result of the index: true, or not true"`
	Evaluator    string    `json:"evaluator" doc:"result of the evaluator: true, false or error"`
}

// A TemplateFault is a position at which a version of a template failed for recipients, or
// a variable that was missing in an event of a topic without a schema.
type TemplateFault struct {
	Service    string    `json:"service" doc:"service of the template"`
	Template   string    `json:"template" doc:"name of the template"`
	Version    int       `json:"version" doc:"version of the template"`
	At         string    `json:"at,omitempty" doc:"part, line and the variables that it reads"`
	Recipients int64     `json:"recipients,omitempty" doc:"number of recipients for whom it failed"`
	Absent     string    `json:"absent,omitempty" doc:"variable that was empty"`
	Since      time.Time `json:"since" doc:"time of the first failure"`
	Last       time.Time `json:"last" doc:"time of the last failure"`
	Replaced   bool      `json:"replaced,omitempty" doc:"another version has been published since"`
}

// Inbound is the mail server that receives bounces. Counts cover the time since the server
// started.
type Inbound struct {
	Listen       string `json:"listen" doc:"listen address, host:port"`
	Open         int    `json:"open" doc:"number of open connections"`
	Taken        int64  `json:"taken" doc:"number of accepted messages"`
	Bounces      int64  `json:"bounces" doc:"number of bounces: messages to the return address of a message"`
	Unsubscribes int64  `json:"unsubscribes" doc:"number of unsubscribe emails"`
	Kept         int64  `json:"kept" doc:"number of messages for postmaster or abuse, stored in the folder postmaster of the data directory"`
	NotNow       int64  `json:"not_now" doc:"number of messages that could not be stored; their senders try again"`
	Refused      int64  `json:"refused" doc:"number of rejected recipients that do not exist"`
}

// A Database is a PostgreSQL database and the connections of the server to it.
type Database struct {
	Where       string     `json:"where" doc:"user, host, port, database and, if it is not the default, schema; never the password"`
	Version     string     `json:"version" doc:"version of PostgreSQL when the server started"`
	Away        *time.Time `json:"away_since,omitempty" doc:"time since which the database has been unreachable; absent while it is reachable"`
	Error       string     `json:"error,omitempty" doc:"why the database cannot be reached"`
	Connections int        `json:"connections" doc:"number of open connections"`
	Busy        int        `json:"busy" doc:"number of connections in use"`
	Most        int        `json:"most" doc:"maximum number of open connections"`
	Retries     int64      `json:"retries" doc:"number of statements and transactions repeated after a conflict or a lost connection, since the server started"`
	Losses      int64      `json:"losses" doc:"number of connections lost while in use, since the server started"`
}

// Bus has the work that waits in the two durable streams.
type Bus struct {
	EventsPending  int64 `json:"events_pending" doc:"number of stored groups of events that are not matched yet; events that arrive together form a group"`
	BatchesPending int64 `json:"batches_pending"`
}

// Deliveries has the deliveries that are not settled.
type Deliveries struct {
	Pending           int64   `json:"pending" doc:"deliveries that have not been tried yet"`
	Deferred          int64   `json:"deferred" doc:"deliveries between two attempts"`
	AcceptedPerSecond float64 `json:"accepted_per_second" doc:"accepted deliveries per second, over the last ten seconds"`
	FailedPerSecond   float64 `json:"failed_per_second" doc:"failed deliveries per second, over the last ten seconds"`
}

// A Channel is the state of a channel.
type Channel struct {
	Service       string  `json:"service"`
	Name          string  `json:"name"`
	Driver        string  `json:"driver"`
	State         string  `json:"state" doc:"idle, running, paused, suspended, or waiting (while the database is unreachable)"`
	Connections   int     `json:"connections" doc:"number of open connections"`
	RatePerSecond float64 `json:"rate_per_second" doc:"messages per second, over the last ten seconds; for a waiting channel, over the last second"`
	RateLimit     string  `json:"rate_limit" doc:"rate limit, such as 30/s, or unlimited"`
	RateSetByHand bool    `json:"rate_set_by_hand,omitempty" doc:"the rate limit was set by hand and overrides the configured one"`
	LastError     string  `json:"last_error,omitempty"`

	DailyQuota *QuotaStatus `json:"daily_quota,omitempty" doc:"daily quota of messages; absent: no limit"`

	Relays []RelayStatus `json:"relays,omitempty" doc:"next hops of the channel"`

	Problems []ChannelProblem `json:"problems,omitempty" doc:"keys, passwords and secrets that cannot be used at present"`
}

// A ChannelProblem is a key, a password or a secret of a channel that cannot be used now.
type ChannelProblem struct {
	Kind     string `json:"kind" doc:"dkim_key: the key cannot be read; dkim_record: the key does not sign until its DNS record exists; password, secret or receipts: the value cannot be read"`
	Domain   string `json:"domain,omitempty" doc:"domain of a DKIM key"`
	Selector string `json:"selector,omitempty" doc:"selector of a DKIM key"`
	File     string `json:"file,omitempty" doc:"file that contains the value, if it is read from a file"`
	Error    string `json:"error" doc:"the problem and its consequences"`
	Hint     string `json:"hint" doc:"remedy"`
}

// ServiceLimits are the limits of all channels of a service together.
type ServiceLimits struct {
	Service       string       `json:"service"`
	RateLimit     string       `json:"rate_limit" doc:"rate limit, such as 30/s, or unlimited"`
	RatePerSecond float64      `json:"rate_per_second" doc:"messages per second of all channels, over the last ten seconds"`
	DailyQuota    *QuotaStatus `json:"daily_quota,omitempty" doc:"daily quota of messages; absent: no limit"`
}

// A QuotaStatus is a daily quota, and the number of messages sent
// today.
type QuotaStatus struct {
	Messages int64     `json:"messages" doc:"maximum number of messages per day"`
	Zone     string    `json:"zone,omitempty" doc:"time zone in which days begin; default: UTC"`
	Used     int64     `json:"used" doc:"number of messages sent today; after a crash up to a hundredth of the quota more, at most 1000"`
	Ends     time.Time `json:"ends" doc:"start of the next day"`
}

// A RelayStatus is the state of a next hop of a channel.
type RelayStatus struct {
	Name        string  `json:"name" doc:"host:port, or the name in the configuration"`
	Node        string  `json:"node,omitempty" doc:"node of the cluster that has the connections; absent: the node that leads, or a single server"`
	State       string  `json:"state" doc:"up; doubted (its last connection was lost); down (it is probed over one connection at a time); drained (by an operator); unused (its weight is 0)"`
	Weight      int     `json:"weight" doc:"configured weight"`
	Share       float64 `json:"share" doc:"share of the channel's connections that it can use now, 0 to 1; it follows the weight and is lower while the relay fails or is slow"`
	Connections int     `json:"connections" doc:"number of open connections"`
	Accepted    int64   `json:"accepted" doc:"number of messages that it accepted since the server started"`
	Errors      int64   `json:"errors" doc:"number of messages lost or rejected because of the relay itself, and of lost connections, since the server started"`
	P50Millis   float64 `json:"p50_millis" doc:"time per message in milliseconds, 50th percentile of the last half minute"`
	P99Millis   float64 `json:"p99_millis" doc:"time per message in milliseconds, 99th percentile of the last half minute"`
	LastError   string  `json:"last_error,omitempty"`
}

// Gathered has the events that wait for a digest.
type Gathered struct {
	Service    string    `json:"service"`
	Cadence    string    `json:"cadence" doc:"such as daily 08:00"`
	Zone       string    `json:"time_zone,omitempty" doc:"time zone of the cadence"`
	Due        time.Time `json:"due" doc:"when the digest is sent"`
	Recipients int64     `json:"recipients" doc:"number of recipients, counted for each event at the time of the match; at most ten seconds old"`
}

// Paused is work that an operator or a broken channel has paused.
type Paused struct {
	Scope  fanfare.Scope `json:"scope"`
	Reason string        `json:"reason,omitempty"`
	Since  time.Time     `json:"since"`
	By     string        `json:"by,omitempty" doc:"key or person that paused it, such as key-2 (Grace Hopper); absent for broadcasts, and if the server did it"`
}

// DeliveryPage is a page of the deliveries of an event or of a person.
type DeliveryPage struct {
	Deliveries    []fanfare.Delivery `json:"deliveries"`
	Next          string             `json:"next,omitempty" doc:"the cursor of the next page; absent at the end"`
	SearchedUntil *time.Time         `json:"searched_until,omitempty" doc:"the search for the filter reached its time limit: entries after this time were searched; next continues"`
	Searched      int64              `json:"searched,omitempty" doc:"for an event: the search for the filter reached its time limit after this number of deliveries; next continues"`

	Gathered []fanfare.Gathering `json:"gathered,omitempty" doc:"for one recipient of an event: the digests that will include the event"`
}

// Broadcasts is a page of broadcasts, the newest first.
type Broadcasts struct {
	Broadcasts    []fanfare.Broadcast `json:"broadcasts" doc:"broadcasts of this page, without the event data"`
	Next          string              `json:"next,omitempty" doc:"the cursor of the next page; absent at the end"`
	SearchedUntil *time.Time          `json:"searched_until,omitempty" doc:"the search for the filter reached its time limit: entries after this time were searched; next continues"`
}

// Events is a page of events, the newest first.
type Events struct {
	Events        []fanfare.Broadcast `json:"events" doc:"events of this page with their state, without their data"`
	Next          string              `json:"next,omitempty" doc:"the cursor of the next page; absent at the end"`
	SearchedUntil *time.Time          `json:"searched_until,omitempty" doc:"the search for the filter reached its time limit: entries after this time were searched; next continues"`
}

// ParkedList lists parked work, the oldest first.
type ParkedList struct {
	Parked []fanfare.Parked `json:"parked" doc:"parked work of this page"`
	Next   string           `json:"next,omitempty" doc:"the cursor of the next page; absent at the end"`
}

// A WorkerStatus is the state of a worker that has sessions or instances.
type WorkerStatus struct {
	Service   string `json:"service"`
	Name      string `json:"name"`
	Sessions  int    `json:"sessions" doc:"number of open sessions"`
	Queued    int64  `json:"queued" doc:"number of requests that wait for an instance"`
	Running   int64  `json:"running" doc:"number of tasks at instances"`
	Instances int    `json:"instances" doc:"number of connected instances"`
	Wanted    int    `json:"wanted" doc:"number of instances that the sessions need"`
}
