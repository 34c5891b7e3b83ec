package catalog

import (
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"strings"
	"sync"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/catalog/schema"
	"fanfare.dev/fanfare/internal/condition"
	"fanfare.dev/fanfare/internal/inputerror"
	"fanfare.dev/fanfare/internal/schedule/cadence"
	"fanfare.dev/fanfare/internal/store/control"
)

// An Approval defines which broadcasts wait for approval. The zero value means none.
type Approval struct {
	HoldAbove        int  `json:"hold_above,omitempty"`         // broadcasts with more messages; 0: not set
	HoldExemptUrgent bool `json:"hold_exempt_urgent,omitempty"` // except broadcasts in the urgent lane
}

// CheckCadence refuses a cadence that the topic does not support.
func (t *Topic) CheckCadence(c cadence.Cadence) error {
	switch {
	case c.Immediate():
		return nil
	case t.Digest.IsZero():
		return inputerror.Invalid("/cadence", "add digest: {template: NAME} to the topic, or omit the cadence", "topic %s has no digest, so it does not support the cadence %s", inputerror.Quote(t.Name), c)
	case c.OfState() && t.Key == "" && t.Digest.Key != "":
		return inputerror.Invalid("/cadence", "set the key of the topic itself to "+t.Digest.Key+", or remove \"of state\" from the cadence",
			"topic %s has a key only in its digest, but a cadence \"of state\" requires a key of the topic itself", inputerror.Quote(t.Name))
	case c.OfState() && t.Key == "":
		return inputerror.Invalid("/cadence", "set a key for the topic, or remove \"of state\" from the cadence", "topic %s has no key, so it has no state", inputerror.Quote(t.Name))
	}
	return nil
}

// DigestInUse returns the error for removing the digest of a topic with n subscriptions that need it.
func (t *Topic) DigestInUse(n int64) *fanfare.Error {
	return &fanfare.Error{Code: fanfare.Conflict, Pointer: inputerror.Pointer("topics", t.Name, "digest"), Message: fmt.Sprintf("%d subscriptions have a cadence that needs the digest", n),
		Hint: "keep the digest, or first set the cadence of these subscriptions to immediate"}
}

// A Topic is a named kind of event. It is immutable: an apply creates a new one.
type Topic struct {
	Service  string
	Name     string
	Number   uint32 // for good
	Title    string
	Lane     fanfare.Lane
	Schema   json.RawMessage // JSON Schema of the event data, or nil: anything goes
	Key      string          // data field with the key of the event, such as a.b; "" for none
	Series   uint32          // of keys: another one each time the topic takes another field
	Rules    []Rule          // in the order that picks the template
	Template string          // for own filters, and for rules without one; may be ""
	Expiry   time.Duration   // time after which an unsent message expires; 0: the value of the channel
	Quiet    QuietHours      // quiet hours, in addition to those of the channel
	Digest   Digest          // of messages that wait for a cadence; required for any cadence except immediate
	Cadence  cadence.Cadence // of new subscriptions that name none

	Generation Generation // which events have their messages made together
	Filter     string     // the worker that removes recipients of the frozen events, or ""

	// PerSubscription says that each subscription gets a message of its own, and that equal subscriptions are separate ones.
	PerSubscription bool

	// ValidateData checks the data of one event against the schema. The error
	// is a *fanfare.Error with Pointer below /data; several in Details.
	ValidateData func(data json.RawMessage) error `json:"-"`

	ServiceNumber  uint32                      `json:"-"` // number
	CheckedFilters *CheckedTexts[fanfare.Cost] `json:"-"` // conditions that are valid for this schema, with their cost
	Body           *TopicBody                  `json:"-"`
}

// A Rule is a condition of the topic that subscriptions choose by name.
type Rule struct {
	Number   uint32            `json:"-"` // for good
	Name     string            `json:"name"`
	When     string            `json:"when"`               // CEL over event and sub
	Params   map[string]string `json:"params,omitempty"`   // name -> string, number, boolean or strings
	Template string            `json:"template,omitempty"` // "" takes the topic's

	Labels // for recipients, who do not see the condition
}

// Labels are a title and a description for recipients.
type Labels struct {
	Title       string `json:"title,omitempty"`
	Description string `json:"description,omitempty"`
}

// Password reads the password of the channel from its environment variable or file. It returns "" if
// neither is set. The password is never stored or shown.
func (c *Channel) Password() (string, error) {
	return c.secret("password", c.PasswordEnv, c.PasswordFile)
}

func UnknownTopic(svc *ServiceSnapshot, name string) error {
	return &fanfare.Error{Code: fanfare.NotFound, Message: "the service has no topic " + inputerror.Quote(name), Hint: inputerror.DidYouMean(name, maps.Keys(svc.Topics), "create a topic first")}
}

// UniqueInUse returns the error for merging the equal subscriptions of a topic with n subscriptions.
func (t *Topic) UniqueInUse(n int64) *fanfare.Error {
	return &fanfare.Error{Code: fanfare.Conflict, Pointer: inputerror.Pointer("topics", t.Name, "unique"), Message: fmt.Sprintf("%d subscriptions of topic %s may be equal", n, inputerror.Quote(t.Name)),
		Hint: "keep unique: subscription, or end the subscriptions first"}
}

// Digest defines how events that wait for a cadence are combined in one message.
type Digest struct {
	Template string `json:"template"`      // template of the message about several events
	Key      string `json:"key,omitempty"` // data field, such as a.b: only the newest event for each value is included; "" includes all
	Max      int    `json:"max,omitempty"` // maximum number of events in a message; the newest are included
}

// IsZero reports whether the topic has none.
func (d Digest) IsZero() bool { return d.Template == "" }

// KeepDigest keeps the previous digest if the topic no longer has one, because recipients who have
// just changed to immediate may still wait for a digest.
func (b *TopicBody) KeepDigest(known *TopicBody) {
	if b.Digest.IsZero() {
		b.PastDigest = known.LatestDigest()
	}
}

func (b *TopicBody) LatestDigest() Digest {
	if b.Digest.IsZero() {
		return b.PastDigest
	}
	return b.Digest
}

// LatestDigest returns the digest of the topic, or the last one that it had.
func (t *Topic) LatestDigest() Digest { return t.Body.LatestDigest() }

// KeyOf returns the value of the digest key in an event.
func (d Digest) KeyOf(e *fanfare.Event) (key string, ok bool) { return condition.KeyAt(d.Key, e.Data) }

// maxChecked is the maximum number of valid texts that a topic remembers. When it is exceeded, the
// topic forgets all of them and compiles them again.
const maxChecked = 20_000

// A CheckedTexts remembers valid texts and the results of their checks, so that a million equal lines
// are checked only once.
type CheckedTexts[T any] struct {
	mu   sync.RWMutex
	good map[string]T
}

// Check calls f unless text is known to be good. Errors are not remembered.
func (c *CheckedTexts[T]) Check(text string, f func(string) (T, error)) (T, error) {
	c.mu.RLock()
	found, ok := c.good[text]
	c.mu.RUnlock()
	if ok {
		return found, nil
	}
	found, err := f(text)
	if err != nil {
		return found, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.good == nil || len(c.good) >= maxChecked {
		c.good = map[string]T{}
	}
	c.good[strings.Clone(text)] = found
	return found, nil
}

// Generation defines which events of a topic are planned together. The zero value is continuous: all
// events that are waiting at the time.
type Generation struct {
	PerChange bool          // each by itself
	Window    time.Duration // those of so long, at its end; 0: no event waits for others
}

// The named values in a document; any other value is the length of a window.
const (
	Continuous = "continuous"
	perChange  = "per_change"
)

// A window is shorter than a request waits for, and longer than a transaction takes.
const (
	minGenerationWindow = time.Second
	maxGenerationWindow = 10 * time.Second
)

// ParseGeneration parses the stored form.
func ParseGeneration(text string) (g Generation, ok bool) {
	if g.PerChange = text == perChange; g.PerChange || text == "" {
		return g, true
	}
	var err error
	g.Window, err = time.ParseDuration(text)
	return g, err == nil && g.Window >= minGenerationWindow && g.Window <= maxGenerationWindow && g.Window%time.Second == 0
}

// The values of unique in a document: what gets at most one message of an event.
const (
	UniqueRecipient    = "recipient" // a recipient over a channel, for all of their subscriptions that match
	UniqueSubscription = "subscription"
)

// TopicSettings are the settings of a topic in a document, without its rules.
type TopicSettings struct {
	Title    string          `json:"title,omitempty"`
	Lane     string          `json:"lane,omitempty"`
	Schema   json.RawMessage `json:"schema,omitempty"`
	Key      string          `json:"key,omitempty"`
	Template string          `json:"template,omitempty"`
	Expiry   Duration        `json:"expiry,omitempty"`
	Approval

	QuietHours QuietHours `json:"quiet_hours,omitzero"`
	Digest     Digest     `json:"digest,omitzero"`
	Cadence    string     `json:"cadence,omitempty"`    // as it is spelled; "": immediate
	Generation string     `json:"generation,omitempty"` // "" is continuous
	Filter     string     `json:"filter,omitempty"`     // name of a worker; "": none
	Unique     string     `json:"unique,omitempty"`     // UniqueSubscription; "": one message for each recipient and channel
	Signup     *Signup    `json:"signup,omitempty"`     // nil: people cannot sign up
}

// TopicBody is the stored form of a topic.
type TopicBody struct {
	TopicSettings
	Rules    []RuleBody `json:"rules,omitempty"`
	LastRule uint32     `json:"last_rule,omitempty"` // numbers up to this one are not reused for new rules
	Series   uint32     `json:"series,omitempty"`    // of keys; a state of another one counts no more

	PastDigest Digest `json:"past_digest,omitzero"` // the last one, of a topic that has none any more
}

type RuleBody struct {
	Number uint32 `json:"number"`
	Rule
}

// loadTopic returns the topic unless it was deleted.
func loadTopic(s *Snapshot, svc *ServiceSnapshot, c *control.ConfigRecord) (*Topic, error) {
	var body TopicBody
	if err := json.Unmarshal(c.Body, &body); err != nil {
		return nil, err
	}
	t, err := NewTopic(svc, c.Number, c.Name, &body)
	if err != nil {
		return nil, err
	}
	s.Topics[t.Number] = t
	if c.Deleted {
		return nil, nil
	}
	svc.Topics[t.Name] = t
	return t, nil
}

// NewTopic creates a topic from its stored form.
func NewTopic(svc *ServiceSnapshot, number uint32, name string, body *TopicBody) (*Topic, error) {
	lane, err := fanfare.ParseLane(body.Lane)
	if err != nil {
		return nil, err
	}
	text := body.Schema
	if text == nil {
		text = reservedSchemas[name]
	}
	check, err := schema.Compile(text)
	if err != nil {
		return nil, inputerror.WithPrefix("/schema", err)
	}
	due, err := cadence.Parse(body.Cadence)
	if err != nil {
		return nil, inputerror.WithPrefix("/cadence", err)
	}
	generation, ok := ParseGeneration(body.Generation)
	if !ok {
		return nil, inputerror.Invalid("/generation", "", "unknown generation %s", inputerror.Quote(body.Generation))
	}
	t := &Topic{Service: svc.Name, Name: name, Number: number, Title: body.Title, Lane: lane, Schema: text, Key: body.Key, Series: body.Series,
		Template: body.Template, Expiry: time.Duration(body.Expiry), Quiet: body.QuietHours, Digest: body.Digest, Cadence: due, Generation: generation, Filter: body.Filter, PerSubscription: body.Unique == UniqueSubscription, ValidateData: check,
		ServiceNumber: svc.Number, CheckedFilters: &CheckedTexts[fanfare.Cost]{}, Body: body}
	for _, r := range body.Rules {
		r.Rule.Number = r.Number
		t.Rules = append(t.Rules, r.Rule)
	}
	return t, nil
}

// Signup defines how people can sign up for a topic.
type Signup struct {
	Channels []string `json:"channels,omitempty"` // to choose from; none: all that go to mail addresses
	Terms    string   `json:"terms,omitempty"`    // version or URL of what they agree to
	Intro    string   `json:"intro,omitempty"`    // what stands above the form
}

// reservedSchemas are the schemas of the events that Fanfare publishes, against which conditions
// are checked. An event leaves out the fields that it does not have.
var reservedSchemas = map[string]json.RawMessage{
	fanfare.TopicDeliveries: outcomesSchema,
	fanfare.TopicFailures:   outcomesSchema,
	fanfare.TopicSubscriptions: json.RawMessage(`{"type":"object","required":["kind","source","topic","count","subscriptions"],"properties":{` +
		`"kind":{"type":"string"},"source":{"type":"string"},"reason":{"type":"string"},"topic":{"type":"string"},"channel":{"type":"string"},` +
		`"count":{"type":"integer"},"subscriptions":{"type":"array","items":{"type":"object","required":["subscription","at"],"properties":{` +
		`"subscription":{"type":"string"},"subscriber":{"type":"string"},"at":{"type":"string"},"fields":{"type":"array","items":{"type":"string"}}}}}}}`),
	fanfare.TopicSuppressions: json.RawMessage(`{"type":"object","required":["kind","source","reason","count","suppressions"],"properties":{` +
		`"kind":{"type":"string"},"source":{"type":"string"},"reason":{"type":"string"},"all_services":{"type":"boolean"},` +
		`"count":{"type":"integer"},"suppressions":{"type":"array","items":{"type":"object","required":["subscriber","address","at"],"properties":{` +
		`"subscriber":{"type":"string"},"address":{"type":"string"},"at":{"type":"string"},"until":{"type":"string"}}}}}}`),
}

var outcomesSchema = json.RawMessage(`{"type":"object","required":["kind","event","count","deliveries"],"properties":{` +
	`"kind":{"type":"string"},"class":{"type":"string"},"channel":{"type":"string"},"topic":{"type":"string"},` +
	`"event":{"type":"string"},"id":{"type":"string"},"source":{"type":"string"},"reference":{"type":"string"},` +
	`"count":{"type":"integer"},"deliveries":{"type":"array","items":{"type":"object","required":["delivery","attempt","at"],"properties":{` +
	`"delivery":{"type":"string"},"attempt":{"type":"integer"},"at":{"type":"string"},"subscriber":{"type":"string"},` +
	`"subscriptions":{"type":"array","items":{"type":"string"}},"code":{"type":"integer"},"text":{"type":"string"}}}}}}`)

func (t *Topic) ConditionKey() condition.Key { return condition.Key{Service: t.Service, Topic: t.Name} }

// Rule returns the rule with this name, or nil.
func (t *Topic) Rule(name string) *Rule {
	for i := range t.Rules {
		if t.Rules[i].Name == name {
			return &t.Rules[i]
		}
	}
	return nil
}

// RuleName returns the name of a rule by number, "" if there is none.
func (t *Topic) RuleName(number uint32) string {
	for i := range t.Rules {
		if t.Rules[i].Number == number {
			return t.Rules[i].Name
		}
	}
	return ""
}

// LabelsOf returns the texts for recipients of a rule, nil for none. Without a title, the rule has that of the topic.
func (t *Topic) LabelsOf(rule *Rule) (l Labels) {
	if rule != nil {
		l = rule.Labels
	}
	if l.Title == "" {
		l.Title = t.Title
	}
	return l
}

func (t *Topic) RuleNames() iter.Seq[string] {
	return func(yield func(string) bool) {
		for i := range t.Rules {
			if !yield(t.Rules[i].Name) {
				return
			}
		}
	}
}

// ConditionDefinition returns the properties of the topic that the match index needs.
func (t *Topic) ConditionDefinition() condition.Definition {
	d := condition.Definition{Schema: t.Schema, Key: t.Key}
	for _, r := range t.Rules {
		d.Rules = append(d.Rules, condition.Rule{Name: r.Name, When: r.When, Params: r.Params})
	}
	return d
}
