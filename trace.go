package fanfare

import (
	"encoding/json"
	"time"
)

// Counts holds the number of deliveries in each state.
type Counts [States]int64

// Total returns the number of deliveries.
func (c Counts) Total() int64 {
	var n int64
	for _, v := range c {
		n += v
	}
	return n
}

// Settled returns the number of settled deliveries.
func (c Counts) Settled() int64 { return c.Total() - c[Pending] - c[Deferred] }

// MarshalJSON writes the counts by the name of the state, without zeros.
func (c Counts) MarshalJSON() ([]byte, error) {
	byName := make(map[string]int64, len(c))
	for s, n := range c {
		if n != 0 {
			byName[State(s).String()] = n
		}
	}
	return json.Marshal(byName)
}

// UnmarshalJSON reads the output of MarshalJSON.
func (c *Counts) UnmarshalJSON(b []byte) error {
	byName := map[string]int64{}
	if err := json.Unmarshal(b, &byName); err != nil {
		return err
	}
	for s, name := range stateNames {
		c[s] = byName[name]
	}
	return nil
}

// Stages holds the times at which an event, or its first or last delivery, left a stage. Zero
// means not yet.
type Stages struct {
	Received  time.Time `json:"received"`           // intake has read the event
	Kept      time.Time `json:"kept,omitzero"`      // durable in EVENTS, before the answer 202
	Matched   time.Time `json:"matched,omitzero"`   // the recipients are known
	Frozen    time.Time `json:"frozen,omitzero"`    // the manifests are complete, and the commit that stores them begins
	First     time.Time `json:"first,omitzero"`     // first outcome: the commit that stores it begins
	Last      time.Time `json:"last,omitzero"`      // latest outcome: the commit that stores it begins
	Completed time.Time `json:"completed,omitzero"` // all deliveries are settled: the commit that stores the last outcome begins
}

// The kinds of a broadcast.
const (
	KindEvent   = "event"   // of a topic; its recipients were matched
	KindMessage = "message" // a direct send; its recipients were named
	KindDigest  = "digest"  // of a cadence; its events were collected
)

// A DigestRun says when a digest was due, and why.
type DigestRun struct {
	Cadence string    `json:"cadence"`             // such as daily 08:00; immediate if it was sent because recipients changed to immediate
	Zone    string    `json:"time_zone,omitempty"` // time zone of the cadence
	Due     time.Time `json:"due"`
}

// A Gathering is the part of an event that is sent in a digest.
type Gathering struct {
	Cadence    string    `json:"cadence"`
	Zone       string    `json:"time_zone,omitempty"`
	Due        time.Time `json:"due"`
	Recipients int64     `json:"recipients"`       // by channel, when matched; recipients that have left since are still counted
	Digest     string    `json:"digest,omitempty"` // id of the digest (evt-…); "" while it waits
}

// A Broadcast is everything that one event triggers.
type Broadcast struct {
	Event     string          `json:"event"` // public id (evt-…)
	Kind      string          `json:"kind"`  // KindEvent, KindMessage or KindDigest
	Service   string          `json:"service"`
	Topic     string          `json:"topic"`               // "" for a message
	Reference string          `json:"reference,omitempty"` // of a message: chosen by the client
	Source    string          `json:"source"`              // of the CloudEvent
	SourceID  string          `json:"sourceid"`            // id of the CloudEvent
	Type      string          `json:"type,omitempty"`      // of the CloudEvent, as its subject, time and extensions
	Subject   string          `json:"subject,omitempty"`
	Time      time.Time       `json:"time,omitzero"`
	Lane      string          `json:"lane"`
	State     string          `json:"state"` // queued, held, running, paused, cancelled, completed
	Reason    string          `json:"reason,omitempty"`
	Matched   int64           `json:"matched"`             // subscriptions that match the event and are in its audience
	Audience  *AudienceFilter `json:"audience,omitempty"`  // condition that limits the recipients
	NotBefore time.Time       `json:"not_before,omitzero"` // no message is sent before this time
	Expires   time.Time       `json:"expires,omitzero"`    // no message is sent after this time
	Messages  int64           `json:"messages"`            // members of its manifests, one per address and channel
	Counts    Counts          `json:"deliveries"`
	Reasons   Reasons         `json:"reasons,omitempty"`         // why deliveries will not reach their recipients; omitted in lists
	PerSecond float64         `json:"rate_per_second,omitempty"` // deliveries settled per second, over the last ten seconds
	End       time.Time       `json:"estimated_end,omitzero"`    // of a running broadcast: expected time of the last outcome at this rate
	Waits     []Waiting       `json:"waits,omitempty"`           // what open deliveries wait for, other than their next attempts
	RateLimit string          `json:"rate_limit,omitempty"`      // maximum sending rate set by an operator, such as 100/s

	Gathered []Gathering `json:"gathered,omitempty"` // of an event: the parts of it that are sent in digests
	Digest   *DigestRun  `json:"digest,omitempty"`   // of a digest: when it was due

	Inbox *InboxCounts `json:"inbox,omitempty"` // of a broadcast with messages in mailboxes

	ApprovedBy string          `json:"approved_by,omitempty"` // of a broadcast that was held: the key that approved it
	Stages     Stages          `json:"stages"`
	Data       json.RawMessage `json:"data,omitempty"` // data of the event; omitted in lists

	ContentType string                     `json:"datacontenttype,omitempty"` // of the data as it was sent; application/json is omitted
	DataSchema  string                     `json:"dataschema,omitempty"`
	Binary      []byte                     `json:"data_base64,omitempty"` // data that is neither JSON nor text; omitted in lists
	Extensions  map[string]json.RawMessage `json:"extensions,omitempty"`  // further attributes of the event
}

// InboxCounts are the messages of a broadcast in the mailboxes of subscribers. A message can be both read and expired.
type InboxCounts struct {
	Stored     int64     `json:"stored"`
	Read       int64     `json:"read"`                 // opened by their recipients
	Recalled   int64     `json:"recalled"`             // removed by a recall
	Expired    int64     `json:"expired"`              // removed by the expiry
	RecalledAt time.Time `json:"recalled_at,omitzero"` // when the broadcast was recalled
	ExpiresAt  time.Time `json:"expires_at,omitzero"`  // when its messages are removed
}

// Describe fills in the fields that the event contains.
func (b *Broadcast) Describe(p *AcceptedEvent) {
	e := &p.Event
	b.Service, b.Topic, b.Lane = p.Service, p.Topic, p.Lane.String()
	b.Source, b.SourceID, b.Type, b.Subject, b.Time = e.Source, e.ID, e.Type, e.Subject, e.Time
	b.Data, b.ContentType, b.DataSchema, b.Binary, b.Extensions = e.Data, e.ContentType, e.DataSchema, e.Binary, e.Extensions
	b.Stages.Received = p.ReceivedAt
	b.Kind, b.Audience = KindEvent, p.Audience
	b.NotBefore, b.Expires = p.NotBefore, p.Expires
	if p.Direct != nil {
		b.Kind, b.Reference = KindMessage, p.Direct.Reference
	}
	if run := p.Run; run != nil {
		b.Kind, b.Digest = KindDigest, &DigestRun{Cadence: run.Cadence, Zone: run.Zone, Due: run.Due}
	}
}

// An Attempt is one attempt of a delivery.
type Attempt struct {
	Number int       `json:"attempt"` // from 1
	State  State     `json:"-"`
	Status string    `json:"state"` // state after the attempt
	Code   int       `json:"code,omitempty"`
	Text   string    `json:"text,omitempty"`
	Relay  string    `json:"relay,omitempty"`
	At     time.Time `json:"at"`
	NextAt time.Time `json:"next_at,omitzero"` // of a deferred delivery
}

// A Delivery is one message for one recipient, as the API returns it.
type Delivery struct {
	ID            string    `json:"id"`    // dlv-…
	Event         string    `json:"event"` // evt-…
	Kind          string    `json:"kind"`  // of its broadcast: event, message or digest
	Service       string    `json:"service"`
	Topic         string    `json:"topic"`               // "" for a message or a digest
	Reference     string    `json:"reference,omitempty"` // of a message
	Events        []string  `json:"events,omitempty"`    // of a digest: the events in it
	Channel       string    `json:"channel"`
	Subscriber    string    `json:"subscriber"`
	Subscriptions []string  `json:"subscriptions"` // empty for a message
	Template      string    `json:"template"`      // name@version; "" for a message with its own content
	Address       string    `json:"address"`       // as sent; the current address if nothing was sent yet
	State         string    `json:"state"`
	Waits         *Waiting  `json:"waits,omitempty"` // of an open delivery: what it waits for, other than its next attempt
	Attempts      []Attempt `json:"attempts"`

	ReadAt     time.Time `json:"read_at,omitzero"`     // of a message in a mailbox: when its recipient opened it first
	RemovedAt  time.Time `json:"removed_at,omitzero"`  // when its recipient removed it
	RecalledAt time.Time `json:"recalled_at,omitzero"` // when a recall removed it
	ExpiredAt  time.Time `json:"expired_at,omitzero"`  // when it was removed because its broadcast expired
}

// ScopeKind is the kind of object that a control command affects.
type ScopeKind string

// The scopes, widest first.
const (
	ScopeAll       ScopeKind = "all"
	ScopeService   ScopeKind = "service"
	ScopeChannel   ScopeKind = "channel"   // service/channel
	ScopeRelay     ScopeKind = "relay"     // service/channel/relay; it can be paused and resumed
	ScopeBroadcast ScopeKind = "broadcast" // event id
)

// A Scope is the object that a pause, resume or cancel affects.
type Scope struct {
	Kind ScopeKind `json:"kind"`
	Name string    `json:"name,omitempty"` // name of the service, "service/channel", "service/channel/relay", or the public event id
}

// A Switch pauses or cancels a broadcast, or the part of it in one channel.
type Switch struct {
	Event   EventRef
	Channel uint16 // 0: all channels
	State   string // SwitchPaused or SwitchCancelled; "" removes the switch
	Reason  string
}

// The states of a Switch.
const (
	SwitchPaused    = "paused"
	SwitchCancelled = "cancelled"
)

// The kinds of parked work.
const (
	ParkedEvents = "event" // a group of events that could not be matched
	ParkedBatch  = "batch"
)

// MaxFailures is the number of failures after which work is parked.
const MaxFailures = 5

// Parked is work that failed too often and waits for an operator.
type Parked struct {
	ID       string    `json:"id"`
	Kind     string    `json:"kind"` // ParkedEvents or ParkedBatch
	Event    string    `json:"event"`
	Reason   string    `json:"reason"`
	Failures int       `json:"failures"`
	Members  int       `json:"members,omitempty"` // number of recipients that wait for it
	At       time.Time `json:"at"`
	Shared   bool      `json:"-"` // belongs to several services, whose events were accepted together
}
