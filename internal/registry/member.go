package registry

import (
	"context"
	"encoding/json"
	"maps"
	"strings"

	"fanfare.dev/fanfare/internal/inputerror"

	"fanfare.dev/fanfare"
)

// A Member names one thing of the configuration.
type Member struct {
	Service string
	Kind    string // service, channel, topic, rule, template, or draft, which has the name of its template
	Name    string // of a service: its own; of a rule: that of the topic
	Rule    string // of a rule
}

// ParseMember reads a text that says what one member shall be, YAML or JSON, into
// a document of that member alone. What is shown of it but cannot be set may
// stand there: its name, if it is the right one, and what the server says of a version
// of a template.
// Pointers of errors, also those of applying the document, begin at the member. Files
// are read below dir; without dir they are refused.
//
// A topic's rules become those that are listed, in that order; where there is no
// list they stay. A rule takes the place of the one that has its name, or the
// last one. All else that is absent is at its default.
func ParseMember(m Member, text []byte, dir string) (*Document, error) {
	p, body, err := readDocument(text)
	if err != nil {
		return nil, err
	}
	p.dir = dir
	d := p.doc
	d.Service, d.root = m.Service, m.pointer()
	n := node{p: p, Node: body, at: d.root}
	p.shown = fields{"name": func(v node) {
		if own := m.own(); v.text() != own {
			v.fault("leave it out", "the path says %s", inputerror.Quote(own))
		}
	}}
	m.check(n)
	switch m.Kind {
	case kindService:
		all := d.approvalFields()
		d.limitFields(all)
		maps.Copy(all, fields{
			"title":             func(v node) { title := v.line(); d.Title = &title },
			"matching_budget":   func(v node) { budget := v.duration(); d.MatchingBudget = &budget },
			"subscriber_schema": func(v node) { d.SubscriberSchema = v.json() },
			"pages":             func(v node) { d.Pages = v.pages() },
		})
		n.fields(all)
		if d.SubscriberSchema == nil {
			d.SubscriberSchema = json.RawMessage("null")
		}
		if d.Pages == nil {
			d.Pages = new(Pages)
		}
		if d.Title == nil {
			d.Title = new(string)
		}
		if d.MatchingBudget == nil {
			d.MatchingBudget = new(Duration)
		}
		if d.HoldAbove == nil {
			d.HoldAbove = new(int)
		}
		if d.HoldExemptUrgent == nil {
			d.HoldExemptUrgent = new(bool)
		}
		if d.Rate == nil {
			d.Rate = new(Rate)
		}
		if d.DailyQuota == nil {
			d.DailyQuota = new(DailyQuota)
		}
		if d.Bounces == nil {
			d.Bounces = new(BounceSettings)
		}
	case kindChannel:
		d.Channels[m.Name] = p.channel(n)
	case kindTopic:
		t := p.topic(n)
		if n.has("rules") {
			t.rules = rulesExact
		}
		d.Topics[m.Name] = t
	case kindRule:
		rule := p.rule(n)
		rule.Name = m.Rule
		d.Topics[m.Name] = &TopicSpec{Rules: []RuleSpec{rule}, rules: rulesAlone}
	case kindTemplate, kindDraft:
		d.Templates[m.Name] = p.version(n, m.Kind)
	}
	if len(p.wrong) > 0 {
		return nil, d.locate(inputerror.Join(p.wrong[:min(len(p.wrong), maxFaults)]))
	}
	return d, nil
}

// own is the name of the member itself.
func (m Member) own() string {
	if m.Kind == kindRule {
		return m.Rule
	}
	return m.Name
}

// check refuses a name that could not be one.
func (m Member) check(n node) {
	if !namePattern.MatchString(m.own()) {
		n.fault(nameHint, "%s is not a name", inputerror.Quote(m.own()))
	}
}

// pointer is where the member stands in a document.
func (m Member) pointer() string {
	switch m.Kind {
	case kindChannel:
		return inputerror.Pointer("channels", m.Name)
	case kindTopic:
		return inputerror.Pointer("topics", m.Name)
	case kindRule:
		return inputerror.Pointer("topics", m.Name, "rules", "0")
	case kindTemplate, kindDraft:
		return inputerror.Pointer("templates", m.Name)
	}
	return ""
}

// deletion is a document that takes the member away.
func (m Member) deletion() *Document {
	d := newDocument()
	d.Service, d.root = m.Service, m.pointer()
	switch m.Kind {
	case kindService:
		d.deleted = true
	case kindChannel:
		d.Channels[m.Name] = &ChannelSpec{Delete: true}
	case kindTopic:
		d.Topics[m.Name] = &TopicSpec{Delete: true}
	case kindRule:
		d.Topics[m.Name] = &TopicSpec{Rules: []RuleSpec{{Rule: Rule{Name: m.Rule}, Delete: true}}, rules: rulesAlone}
	case kindTemplate:
		d.Templates[m.Name] = &TemplateSpec{Delete: true}
	case kindDraft:
		d.Templates[m.Name] = &TemplateSpec{does: discards}
	}
	return d
}

// version reads a template that is to be published, or kept as a draft.
func (p *documentReader) version(n node, kind string) *TemplateSpec {
	note := ""
	for _, name := range []string{"version", "state", "base", "at", "key", "key_name"} {
		p.shown[name] = func(node) {}
	}
	p.shown["note"] = func(v node) { note = v.note() }
	spec := p.template(n)
	spec.Note = note
	if kind == kindDraft {
		spec.does = drafts
	}
	return spec
}

// checkNote refuses a note that is no short line.
func checkNote(note string) error {
	switch {
	case strings.ContainsAny(note, "\r\n\x00"):
		return inputerror.Invalid("", "", "a note must be one line")
	case len(note) > maxNoteBytes:
		return inputerror.TooLarge("", len(note), maxNoteBytes)
	}
	return nil
}

func (n node) note() string {
	note := n.text()
	if err := checkNote(note); err != nil {
		n.fail(err)
	}
	return note
}

// Publication is a document that publishes the draft of a template, or one of its
// versions again. A note says why; without one that of the draft stays.
func Publication(service, template string, version int, note string) (*Document, error) {
	if err := checkNote(note); err != nil {
		return nil, inputerror.WithPointer("/note", err)
	}
	d := newDocument()
	d.Service, d.root = service, inputerror.Pointer("templates", template)
	d.Templates[template] = &TemplateSpec{does: publishes, version: version, Note: note}
	return d, nil
}

// ApplyMember is Apply of what ParseMember has made. check is asked about the
// very configuration that is changed; its error refuses the change. It returns the
// configuration after it.
func (r *Registry) ApplyMember(ctx context.Context, d *Document, check func(Configuration) error) (Configuration, error) {
	pl, err := r.apply(ctx, d, check)
	if err != nil {
		return Configuration{}, err
	}
	return Configuration{pl.to}, nil
}

// DeleteMember takes a member away. With a service goes all that it has, and its
// keys. What active or paused subscriptions need is a Conflict. One that is not there is no
// error, unless check has one.
func (r *Registry) DeleteMember(ctx context.Context, m Member, check func(Configuration) error) error {
	guarded := func(c Configuration) error {
		if err := check(c); err != nil {
			return err
		}
		if c.Service(m.Service) == nil {
			return errNothing
		}
		return nil
	}
	_, err := r.apply(ctx, m.deletion(), guarded)
	if err == errNothing { //nolint:errorlint // it comes as it is
		return nil
	}
	return err
}

// errNothing ends an apply that has nothing to take away. No caller gets it.
var errNothing = &fanfare.Error{Code: fanfare.NotFound, Message: "nothing to delete"}
