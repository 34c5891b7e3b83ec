package fanfare

import (
	"encoding/json"
	"time"
)

// Counts says how many deliveries are in each state.
type Counts [States]int64

// Total is the number of deliveries counted.
func (c Counts) Total() int64 {
	var n int64
	for _, v := range c {
		n += v
	}
	return n
}

// Settled is the number of deliveries that are over.
func (c Counts) Settled() int64 { return c.Total() - c[Pending] - c[Deferred] }

// MarshalJSON writes the counts by name of state, zeros left out.
func (c Counts) MarshalJSON() ([]byte, error) {
	byName := make(map[string]int64, len(c))
	for s, n := range c {
		if n != 0 {
			byName[State(s).String()] = n
		}
	}
	return json.Marshal(byName)
}

// UnmarshalJSON reads what MarshalJSON wrote.
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

// Stages are the times at which an event, or the first or last of what it set
// off, left a stage. Zero means: not yet.
type Stages struct {
	Received  time.Time `json:"received"`           // intake read it
	Kept      time.Time `json:"kept,omitzero"`      // durable in EVENTS, then 202
	Matched   time.Time `json:"matched,omitzero"`   // the set of recipients is known
	Frozen    time.Time `json:"frozen,omitzero"`    // manifests complete: the commit that keeps them begins
	First     time.Time `json:"first,omitzero"`     // first outcome: the commit that keeps it begins
	Last      time.Time `json:"last,omitzero"`      // last outcome so far: the commit that keeps it begins
	Completed time.Time `json:"completed,omitzero"` // every delivery settled: the commit that keeps the last outcome begins
}

// The kinds of a broadcast.
const (
	KindEvent   = "event"   // of a topic: its recipients were matched
	KindMessage = "message" // a direct send: its recipients were named
	KindDigest  = "digest"  // of a cadence: what was gathered for it
)

// A DigestRun is when a digest was due, and why.
type DigestRun struct {
	Cadence string    `json:"cadence"`             // such as daily 08:00; immediate where it is sent since people chose that
	Zone    string    `json:"time_zone,omitempty"` // on whose clock
	Due     time.Time `json:"due"`
}

// A Gathering is the part of an event that is told in a digest.
type Gathering struct {
	Cadence    string    `json:"cadence"`
	Zone       string    `json:"time_zone,omitempty"`
	Due        time.Time `json:"due"`
	Recipients int64     `json:"recipients"`       // by channel, as they were matched; who has left since is not told
	Digest     string    `json:"digest,omitempty"` // id of the digest (evt-…); "" while it waits
}

// A Broadcast is everything that one event set off, seen as one thing.
type Broadcast struct {
	Event     string          `json:"event"` // public id (evt-…)
	Kind      string          `json:"kind"`  // KindEvent, KindMessage or KindDigest
	Service   string          `json:"service"`
	Topic     string          `json:"topic"`               // "" of a message
	Reference string          `json:"reference,omitempty"` // of a message: the client's own text
	Source    string          `json:"source"`              // of the CloudEvent
	SourceID  string          `json:"sourceid"`            // id of the CloudEvent
	Type      string          `json:"type,omitempty"`      // of the CloudEvent, as its subject, time and extensions
	Subject   string          `json:"subject,omitempty"`
	Time      time.Time       `json:"time,omitzero"`
	Lane      string          `json:"lane"`
	State     string          `json:"state"` // queued, held, running, paused, cancelled, completed
	Reason    string          `json:"reason,omitempty"`
	Matched   int64           `json:"matched"`             // subscriptions that wanted it, and are in its audience
	Audience  *AudienceFilter `json:"audience,omitempty"`  // who of those that want it were to get it
	NotBefore time.Time       `json:"not_before,omitzero"` // nothing leaves before
	Expires   time.Time       `json:"expires,omitzero"`    // nothing leaves after
	Messages  int64           `json:"messages"`            // members of its manifests: one per address and channel
	Counts    Counts          `json:"deliveries"`
	PerSecond float64         `json:"rate_per_second,omitempty"` // deliveries settled a second, over the last ten
	End       time.Time       `json:"estimated_end,omitzero"`    // when the last is settled if that goes on; of one that runs
	Waits     []Waiting       `json:"waits,omitempty"`           // what open ones wait for, beside their next attempts
	RateLimit string          `json:"rate_limit,omitempty"`      // how fast it may leave, where an operator has set it: 100/s

	Gathered []Gathering `json:"gathered,omitempty"` // of an event: what of it is told in digests
	Digest   *DigestRun  `json:"digest,omitempty"`   // of a digest: when it was due

	ApprovedBy string          `json:"approved_by,omitempty"` // of one that was held: the key that let it go
	Stages     Stages          `json:"stages"`
	Data       json.RawMessage `json:"data,omitempty"` // the event's data; left out of lists

	ContentType string                     `json:"datacontenttype,omitempty"` // of the data as it was sent; application/json is left out
	DataSchema  string                     `json:"dataschema,omitempty"`
	Binary      []byte                     `json:"data_base64,omitempty"` // data that is neither JSON nor text; left out of lists
	Extensions  map[string]json.RawMessage `json:"extensions,omitempty"`  // further attributes of the event
}

// Describe fills in what the event itself says.
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

// An Attempt is one try of a delivery.
type Attempt struct {
	Number int       `json:"attempt"` // from 1
	State  State     `json:"-"`
	Status string    `json:"state"` // the state that the try led to
	Code   int       `json:"code,omitempty"`
	Text   string    `json:"text,omitempty"`
	Relay  string    `json:"relay,omitempty"`
	At     time.Time `json:"at"`
	NextAt time.Time `json:"next_at,omitzero"` // of a deferred one
}

// A Delivery is one message for one recipient, as support asks for it.
type Delivery struct {
	ID            string    `json:"id"`    // dlv-…
	Event         string    `json:"event"` // evt-…
	Kind          string    `json:"kind"`  // of its broadcast: event, message or digest
	Service       string    `json:"service"`
	Topic         string    `json:"topic"`               // "" of a message or digest
	Reference     string    `json:"reference,omitempty"` // of a message
	Events        []string  `json:"events,omitempty"`    // of a digest: those that it tells of
	Channel       string    `json:"channel"`
	Subscriber    string    `json:"subscriber"`
	Subscriptions []string  `json:"subscriptions"` // empty of a message
	Template      string    `json:"template"`      // name@version; "" of a message with content of its own
	Address       string    `json:"address"`       // as sent; the current one while nothing was sent
	State         string    `json:"state"`
	Waits         *Waiting  `json:"waits,omitempty"` // of an open one: what it waits for, beside its next attempt
	Attempts      []Attempt `json:"attempts"`
}

// ScopeKind says what a control command reaches.
type ScopeKind string

// The scopes, widest first.
const (
	ScopeAll       ScopeKind = "all"
	ScopeService   ScopeKind = "service"
	ScopeChannel   ScopeKind = "channel"   // service/channel
	ScopeRelay     ScopeKind = "relay"     // service/channel/relay; it can be paused and resumed
	ScopeBroadcast ScopeKind = "broadcast" // event id
)

// A Scope is what a pause, resume or cancel reaches.
type Scope struct {
	Kind ScopeKind `json:"kind"`
	Name string    `json:"name,omitempty"` // of the service, "service/channel", "service/channel/relay", or the public event id
}

// A Switch stops a broadcast, or its part in one channel.
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
	Members  int       `json:"members,omitempty"` // recipients it holds up
	At       time.Time `json:"at"`
	Shared   bool      `json:"-"` // it is of several services, which were accepted together
}
