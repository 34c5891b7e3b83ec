package document

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/catalog"
	"fanfare.dev/fanfare/internal/inputerror"
)

// Locate adds the line and column of the member to which an error points, unless the error already
// has them.
func (d *Document) Locate(err error) error {
	e, ok := errors.AsType[*fanfare.Error](err)
	if !ok {
		return err
	}
	for _, part := range append([]*fanfare.Error{e}, e.Details...) {
		if rest, ok := within(part.Pointer, d.RulePointer); ok {
			part.Pointer = d.root + rest
		}
		if part.Line == 0 {
			pos := d.position(part.Pointer)
			part.Line, part.Column = pos.line, pos.column
		}
		if rest, ok := within(part.Pointer, d.root); ok {
			part.Pointer = rest
		}
	}
	return e
}

// position returns the position of the member at the pointer, or of the closest enclosing member with
// a known position, or zero.
func (d *Document) position(at string) position {
	for ; at != ""; at = at[:max(0, strings.LastIndexByte(at, '/'))] {
		if pos, ok := d.positions[at]; ok {
			return pos
		}
	}
	return position{}
}

// Relocated converts the lines and columns of an error from the document that was sent to d, which has
// the same content in another text. The line of a template or an expression is kept, and the message
// says where that text begins.
func (d *Document) Relocated(err error, sent *Document) error {
	e, ok := errors.AsType[*fanfare.Error](err)
	if !ok {
		return err
	}
	for _, part := range append([]*fanfare.Error{e}, e.Details...) {
		switch pos := d.position(part.Pointer); {
		case (position{part.Line, part.Column}) == sent.position(part.Pointer):
			part.Line, part.Column = pos.line, pos.column
		case part.Line > 0 && pos.line > 0:
			part.Message += fmt.Sprintf(", in the text at line %d", pos.line)
		}
	}
	return e
}

// within returns the part of a pointer below root.
func within(pointer, root string) (string, bool) {
	rest, ok := strings.CutPrefix(pointer, root)
	return rest, ok && root != "" && (rest == "" || rest[0] == '/')
}

// A TemplateAction is the effect of a document on a template.
type TemplateAction int

const (
	ActionApply   TemplateAction = iota // publishes what the document says
	ActionDraft                         // keeps what it says as a draft
	ActionPublish                       // publishes the draft, or an earlier version again
	ActionDiscard                       // takes the draft away
)

// approvalFields reads the approval settings of the service.
func (d *Document) approvalFields() fieldReaders {
	fields := holdFields(func(n int) { d.HoldAbove = &n }, func(yes bool) { d.HoldExemptUrgent = &yes })
	fields["send_approval"] = func(v node) {
		text := v.text()
		if text != catalog.SendApprovalRequired && text != catalog.SendApprovalNone {
			v.fault("use "+catalog.SendApprovalRequired+" or "+catalog.SendApprovalNone, "unknown value %s", inputerror.Quote(text))
		}
		d.SendApproval = &text
	}
	return fields
}

// approvalFields reads the approval settings of a topic.
func (t *TopicSpec) approvalFields() fieldReaders {
	return holdFields(func(n int) { t.HoldAbove = n }, func(yes bool) { t.HoldExemptUrgent = yes })
}

// A Document describes the configuration of one service. Members that it does not contain are
// unchanged. A member that it contains is replaced as a whole, with defaults for absent fields;
// "delete: true" deletes it. Encoded as JSON, it is again a document, with all files inlined.
type Document struct {
	Service   string                   `json:"service"`
	Title     *string                  `json:"title,omitempty"` // of the service; nil leaves it
	Channels  map[string]*ChannelSpec  `json:"channels,omitempty"`
	Topics    map[string]*TopicSpec    `json:"topics,omitempty"`
	Templates map[string]*TemplateSpec `json:"templates,omitempty"`
	Workers   map[string]*WorkerSpec   `json:"workers,omitempty"`

	// MatchingBudget is the maximum matching cost of an event for unindexed conditions. nil leaves it
	// unchanged, and 0 is the default.
	MatchingBudget *catalog.Duration `json:"matching_budget,omitempty"`

	// HoldAbove and HoldExemptUrgent define which broadcasts wait for approval. nil leaves them
	// unchanged, and 0 means none.
	HoldAbove        *int  `json:"hold_above,omitempty"`
	HoldExemptUrgent *bool `json:"hold_exempt_urgent,omitempty"`

	// SendApproval says whether a second person must approve sends. nil leaves it unchanged.
	SendApproval *string `json:"send_approval,omitempty"`

	// Rate and DailyQuota limit all channels together. nil leaves them unchanged, and zero values mean no
	// limit.
	Rate       *catalog.Rate       `json:"rate,omitempty"`
	DailyQuota *catalog.DailyQuota `json:"daily_quota,omitempty"`

	// Bounces define after which bounces an address is suppressed. nil leaves them unchanged; otherwise,
	// missing rules take their defaults.
	Bounces *catalog.BounceSettings `json:"bounces,omitempty"`

	// SubscriberSchema is the JSON Schema of the attributes of subscribers. null removes it, and an absent
	// field leaves it unchanged.
	SubscriberSchema json.RawMessage `json:"subscriber_schema,omitempty"`

	// Pages is the look of the recipient pages of the service. nil leaves it unchanged.
	Pages *catalog.Pages `json:"pages,omitempty"`

	// MailDomains are the domains for whose addresses the mailboxes of the service receive mail. nil leaves them unchanged; an empty list
	// means all addresses of its mailboxes.
	MailDomains *[]catalog.MailDomain `json:"mail_domains,omitempty"`

	// Roles are the roles of people who sign in with OpenID Connect. nil leaves them unchanged; an empty list means none.
	Roles *[]catalog.RoleGrant `json:"roles,omitempty"`

	// Notify are the settings for clients of GOV.UK Notify. nil leaves them unchanged; without a channel, no client can use the service.
	Notify *catalog.NotifySettings `json:"notify,omitempty"`

	DeleteService bool                `json:"-"` // the service goes, with all that it has
	root          string              `json:"-"` // pointer of the one member that the text is about, or ""
	RulePointer   string              `json:"-"` // pointer of the one rule that it is about, in the topic as it will be
	positions     map[string]position `json:"-"` // of members, by JSON pointer
}

func newDocument() *Document {
	return &Document{Channels: map[string]*ChannelSpec{}, Topics: map[string]*TopicSpec{}, Templates: map[string]*TemplateSpec{}, Workers: map[string]*WorkerSpec{},
		positions: map[string]position{}}
}

// A ChannelSpec describes a channel in a document.
type ChannelSpec struct {
	catalog.ChannelSettings
	Delete bool `json:"delete,omitempty"`
}

// A WorkerSpec describes a worker in a document.
type WorkerSpec struct {
	catalog.WorkerSettings
	Delete bool `json:"delete,omitempty"`
}

// A TopicSpec describes a topic in a document. Existing rules that it does not contain follow those
// that it contains.
type TopicSpec struct {
	catalog.TopicSettings
	Rules  []RuleSpec `json:"rules,omitempty"`
	Delete bool       `json:"delete,omitempty"`

	RuleMode ruleMode `json:"-"`
}

// A ruleMode defines what happens to existing rules that a document does not contain.
type ruleMode int

const (
	RulesMerge   ruleMode = iota // they follow the named ones
	RulesReplace                 // they go
	RulesOnly                    // they keep their places, as the named ones do, and so do the topic's settings
)

// A RuleSpec describes a rule in a document.
type RuleSpec struct {
	catalog.Rule
	Delete bool `json:"delete,omitempty"`
}

// A TemplateSpec describes a template in a document. Every change creates a new version.
type TemplateSpec struct {
	catalog.TemplateParts
	Delete bool `json:"delete,omitempty"`

	MinVersion int `json:"min_version,omitempty"` // lowest number of the version that the document publishes

	Action  TemplateAction `json:"-"`
	Version int            `json:"-"` // to publish; 0: that of the draft
	Note    string         `json:"-"` // on what is published or kept
}

type position struct{ line, column int }

// A Member identifies one object of the configuration.
type Member struct {
	Service string
	Kind    string // service, channel, topic, rule, template, worker, or draft, which has the name of its template
	Name    string // of a service: its own; of a rule: that of the topic
	Rule    string // of a rule
}

// ParseMember parses the text of one member, YAML or JSON, into a document with that member alone.
// The text may contain the read-only fields that the server shows: the name, which must be the
// right one, and the facts about a version of a template. Pointers of errors, also those of
// applying the document, begin at the member. Files are read below dir; without dir they are
// refused.
func ParseMember(m Member, text []byte, dir string) (*Document, error) {
	p, body, err := readDocument(text)
	if err != nil {
		return nil, err
	}
	p.dir = dir
	d := p.doc
	d.Service, d.root = m.Service, m.pointer()
	n := node{p: p, Node: body, at: d.root}
	p.shown = fieldReaders{"name": func(v node) {
		if own := m.own(); v.text() != own {
			v.fault("omit the name", "the name differs from %s in the path", inputerror.Quote(own))
		}
	}}
	m.check(n)
	switch m.Kind {
	case catalog.KindService:
		all := d.approvalFields()
		d.limitFields(all)
		maps.Copy(all, fieldReaders{
			"title":             func(v node) { title := v.line(); d.Title = &title },
			"matching_budget":   func(v node) { budget := v.duration(); d.MatchingBudget = &budget },
			"subscriber_schema": func(v node) { d.SubscriberSchema = v.json() },
			"pages":             func(v node) { d.Pages = v.pages() },
			"mail_domains":      func(v node) { d.MailDomains = v.mailDomains() },
		})
		n.fields(all)
		if d.SubscriberSchema == nil {
			d.SubscriberSchema = json.RawMessage("null")
		}
		if d.Pages == nil {
			d.Pages = new(catalog.Pages)
		}
		if d.Notify == nil {
			d.Notify = new(catalog.NotifySettings)
		}
		if d.MailDomains == nil {
			d.MailDomains = new([]catalog.MailDomain)
		}
		if d.Title == nil {
			d.Title = new(string)
		}
		if d.MatchingBudget == nil {
			d.MatchingBudget = new(catalog.Duration)
		}
		if d.HoldAbove == nil {
			d.HoldAbove = new(int)
		}
		if d.SendApproval == nil {
			d.SendApproval = new(string)
		}
		if d.HoldExemptUrgent == nil {
			d.HoldExemptUrgent = new(bool)
		}
		if d.Rate == nil {
			d.Rate = new(catalog.Rate)
		}
		if d.DailyQuota == nil {
			d.DailyQuota = new(catalog.DailyQuota)
		}
		if d.Bounces == nil {
			d.Bounces = new(catalog.BounceSettings)
		}
	case catalog.KindChannel:
		d.Channels[m.Name] = p.channel(n)
	case catalog.KindWorker:
		for _, name := range []string{"service", "sessions", "queued", "running", "instances", "wanted"} {
			p.shown[name] = func(node) {}
		}
		d.Workers[m.Name] = p.worker(n)
	case catalog.KindTopic:
		t := p.topic(n)
		if n.has("rules") {
			t.RuleMode = RulesReplace
		}
		d.Topics[m.Name] = t
	case catalog.KindRule:
		rule := p.rule(n)
		rule.Name = m.Rule
		d.Topics[m.Name] = &TopicSpec{Rules: []RuleSpec{rule}, RuleMode: RulesOnly}
	case catalog.KindTemplate, catalog.KindDraft:
		d.Templates[m.Name] = p.version(n, m.Kind)
	}
	if len(p.wrong) > 0 {
		return nil, d.Locate(inputerror.Join(p.wrong[:min(len(p.wrong), MaxErrors)]))
	}
	return d, nil
}

// own is the name of the member itself.
func (m Member) own() string {
	if m.Kind == catalog.KindRule {
		return m.Rule
	}
	return m.Name
}

// check refuses an invalid name.
func (m Member) check(n node) {
	if !NamePattern.MatchString(m.own()) {
		n.fault(NameHint, "%s is not a valid name", inputerror.Quote(m.own()))
	}
}

// pointer returns the pointer of the member in a document.
func (m Member) pointer() string {
	switch m.Kind {
	case catalog.KindChannel:
		return inputerror.Pointer("channels", m.Name)
	case catalog.KindWorker:
		return inputerror.Pointer("workers", m.Name)
	case catalog.KindTopic:
		return inputerror.Pointer("topics", m.Name)
	case catalog.KindRule:
		return inputerror.Pointer("topics", m.Name, "rules", "0")
	case catalog.KindTemplate, catalog.KindDraft:
		return inputerror.Pointer("templates", m.Name)
	}
	return ""
}

// Deletion returns a document that deletes the member.
func (m Member) Deletion() *Document {
	d := newDocument()
	d.Service, d.root = m.Service, m.pointer()
	switch m.Kind {
	case catalog.KindService:
		d.DeleteService = true
	case catalog.KindChannel:
		d.Channels[m.Name] = &ChannelSpec{Delete: true}
	case catalog.KindWorker:
		d.Workers[m.Name] = &WorkerSpec{Delete: true}
	case catalog.KindTopic:
		d.Topics[m.Name] = &TopicSpec{Delete: true}
	case catalog.KindRule:
		d.Topics[m.Name] = &TopicSpec{Rules: []RuleSpec{{Rule: catalog.Rule{Name: m.Rule}, Delete: true}}, RuleMode: RulesOnly}
	case catalog.KindTemplate:
		d.Templates[m.Name] = &TemplateSpec{Delete: true}
	case catalog.KindDraft:
		d.Templates[m.Name] = &TemplateSpec{Action: ActionDiscard}
	}
	return d
}

// version reads a template to publish, or to store as a draft.
func (p *reader) version(n node, kind string) *TemplateSpec {
	note := ""
	for _, name := range []string{"version", "state", "base", "at", "key", "key_name"} {
		p.shown[name] = func(node) {}
	}
	p.shown["note"] = func(v node) { note = v.note() }
	spec := p.template(n)
	spec.Note = note
	if kind == catalog.KindDraft {
		spec.Action = ActionDraft
	}
	return spec
}

func (n node) note() string {
	note := n.text()
	if err := checkNote(note); err != nil {
		n.fail(err)
	}
	return note
}

// Publication returns a document that publishes the draft of a template, or one of its versions
// again. Without a note, the note of the draft is used.
func Publication(service, template string, version int, note string) (*Document, error) {
	if err := checkNote(note); err != nil {
		return nil, inputerror.WithPointer("/note", err)
	}
	d := newDocument()
	d.Service, d.root = service, inputerror.Pointer("templates", template)
	d.Templates[template] = &TemplateSpec{Action: ActionPublish, Version: version, Note: note}
	return d, nil
}

// limitFields reads the limits of the service.
func (d *Document) limitFields(all fieldReaders) {
	all["rate"] = func(v node) { rate := v.rate(); d.Rate = &rate }
	all["daily_quota"] = func(v node) { quota := v.dailyQuota(); d.DailyQuota = &quota }
	all["bounces"] = func(v node) { bounces := v.bounces(); d.Bounces = &bounces }
}
