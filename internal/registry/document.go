package registry

// A Document says what the configuration of one service shall be. What it does
// not name stays as it is; a member that it names is taken as a whole, its
// absent fields at their defaults; a member goes only by "delete: true".
// Encoded as JSON it is again a document, with all files inlined.
type Document struct {
	Service   string                   `json:"service"`
	Channels  map[string]*ChannelSpec  `json:"channels,omitempty"`
	Topics    map[string]*TopicSpec    `json:"topics,omitempty"`
	Templates map[string]*TemplateSpec `json:"templates,omitempty"`

	positions map[string]position // of members, by JSON pointer
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
}

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
}

type position struct{ line, column int }
