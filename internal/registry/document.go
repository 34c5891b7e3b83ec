package registry

import "encoding/json"

// A Document says what the configuration of one service shall be. What it does
// not name stays as it is; a member that it names is taken as a whole, its
// absent fields at their defaults; a member goes only by "delete: true".
// Encoded as JSON it is again a document, with all files inlined.
type Document struct {
	Service   string                   `json:"service"`
	Title     *string                  `json:"title,omitempty"` // of the service; nil leaves it
	Channels  map[string]*ChannelSpec  `json:"channels,omitempty"`
	Topics    map[string]*TopicSpec    `json:"topics,omitempty"`
	Templates map[string]*TemplateSpec `json:"templates,omitempty"`

	// MatchingBudget is what one event may take in conditions to which no index
	// leads; nil leaves it, 0 is the default.
	MatchingBudget *Duration `json:"matching_budget,omitempty"`

	// HoldAbove and HoldExemptUrgent say which broadcasts wait for approval; nil
	// leaves them, 0 is: none.
	HoldAbove        *int  `json:"hold_above,omitempty"`
	HoldExemptUrgent *bool `json:"hold_exempt_urgent,omitempty"`

	// Rate and DailyQuota bound what all channels send together; nil leaves them, the
	// zero ones are: without bound.
	Rate       *Rate       `json:"rate,omitempty"`
	DailyQuota *DailyQuota `json:"daily_quota,omitempty"`

	// Bounces say after which bounces an address is given up; nil leaves them, of
	// those that are given a rule that is left out is the default.
	Bounces *BounceSettings `json:"bounces,omitempty"`

	// SubscriberSchema is the JSON Schema of the attributes of subscribers; null
	// takes it away, absent leaves it.
	SubscriberSchema json.RawMessage `json:"subscriber_schema,omitempty"`

	// Pages is how the pages of the service look; nil leaves it.
	Pages *Pages `json:"pages,omitempty"`

	deleted   bool                `json:"-"` // the service goes, with all that it has
	root      string              `json:"-"` // pointer of the one member that the text is about, or ""
	ruleAt    string              `json:"-"` // pointer of the one rule that it is about, in the topic as it will be
	positions map[string]position `json:"-"` // of members, by JSON pointer
}

func newDocument() *Document {
	return &Document{Channels: map[string]*ChannelSpec{}, Topics: map[string]*TopicSpec{}, Templates: map[string]*TemplateSpec{},
		positions: map[string]position{}}
}

// A ChannelSpec is what a document says of a channel.
type ChannelSpec struct {
	ChannelSettings
	Delete bool `json:"delete,omitempty"`
}

// A TopicSpec is what a document says of a topic. Rules that are known but not
// named follow the named ones.
type TopicSpec struct {
	TopicSettings
	Rules  []RuleSpec `json:"rules,omitempty"`
	Delete bool       `json:"delete,omitempty"`

	rules ruleMode `json:"-"`
}

// A ruleMode says what becomes of the rules that a document does not name.
type ruleMode int

const (
	rulesFollow ruleMode = iota // they follow the named ones
	rulesExact                  // they go
	rulesAlone                  // they keep their places, as the named ones do, and so do the topic's settings
)

// A RuleSpec is what a document says of a rule.
type RuleSpec struct {
	Rule
	Delete bool `json:"delete,omitempty"`
}

// A TemplateSpec is what a document says of a template. Every change makes a new
// version.
type TemplateSpec struct {
	TemplateParts
	Delete bool `json:"delete,omitempty"`

	does    templateDeed `json:"-"`
	version int          `json:"-"` // to publish; 0: that of the draft
	Note    string       `json:"-"` // on what is published or kept
}

type position struct{ line, column int }
