package registry

import (
	"encoding/json"
	"fmt"
	"time"

	"fanfare.dev/fanfare/internal/store/control"

	"fanfare.dev/fanfare/internal/catalog/schema"
	"fanfare.dev/fanfare/internal/inputerror"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/schedule/cadence"
)

// Kinds of ConfigRecord.
const (
	kindService  = "service"
	kindChannel  = "channel"
	kindTopic    = "topic"
	kindRule     = "rule" // kept with its topic
	kindTemplate = "template"
	kindDraft    = "draft" // of a template
	kindKey      = "key"
	kindSwitch   = "switch"

	kindSubscriberSchema = "subscriber_schema" // has the number of its service
)

// What the audit calls people and what they want.
const (
	kindSubscriber   = "subscriber"
	kindSubscription = "subscription"
)

// TopicSettings is what a document says about a topic, but for its rules.
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
	Signup     *Signup    `json:"signup,omitempty"`     // nil: nobody subscribes by themselves
}

// topicBody is what is kept of a topic.
type topicBody struct {
	TopicSettings
	Rules    []ruleBody `json:"rules,omitempty"`
	LastRule uint32     `json:"last_rule,omitempty"` // number that no new rule gets
	Series   uint32     `json:"series,omitempty"`    // of keys; a state of another one counts no more

	PastDigest Digest `json:"past_digest,omitzero"` // the last one, of a topic that has none any more
}

type ruleBody struct {
	Number uint32 `json:"number"`
	Rule
}

// TemplateParts is what a document says about a template.
type TemplateParts struct {
	Subject string `json:"subject,omitempty"`
	Text    string `json:"text,omitempty"`
	HTML    string `json:"html,omitempty"`
	JSON    string `json:"json,omitempty"` // for programs

	Markdown string `json:"markdown,omitempty"` // in place of HTML
	Syntax   string `json:"syntax,omitempty"`   // liquid or notify
	Layout   string `json:"layout,omitempty"`   // what stands around it
	Lang     string `json:"lang,omitempty"`     // the language that it is written in
	Page     string `json:"page,omitempty"`     // a layout of its own

	Partials map[string]string `json:"partials,omitempty"`

	TemplateFiles

	TemplateVariants
}

// templateBody is what is kept of one version of a template.
type templateBody struct {
	Version int `json:"version"`
	Made
	TemplateParts
}

// loadConfig puts a kept record into s. Services come first.
func (r *Registry) loadConfig(s *snapshot, c *control.ConfigRecord) error {
	switch c.Kind {
	case kindService:
		return loadService(s, c)
	case kindKey:
		return r.loadKey(s, c)
	case kindSwitch:
		return r.loadSwitch(c)
	case kindRate:
		return r.loadRate(c)
	case kindSubscriberSchema:
		return loadSubscriberSchema(s, c)
	case kindQuota:
		return r.loadQuota(c)
	case kindFloor:
		return r.loadFloor(c)
	case kindQuarantine:
		return r.loadQuarantine(c)
	}
	name, known := s.names[c.Service]
	if !known {
		return fmt.Errorf("no service %d", c.Service)
	}
	svc := s.services[name]
	if svc == nil { // deleted, and with it all that it had
		svc = newService(c.Service, name)
	}
	switch c.Kind {
	case kindChannel:
		return loadChannel(s, svc, c)
	case kindTopic:
		return r.loadTopic(s, svc, c)
	case kindSlot:
		return r.loadSlot(svc, c)
	case kindTemplate:
		return loadTemplate(s, svc, c)
	case kindDraft:
		return loadDraft(s, svc, c)
	}
	return fmt.Errorf("unknown kind; was the store written by a newer version?")
}

// serviceBody is what is kept of a service.
type serviceBody struct {
	Title  string   `json:"title,omitempty"`
	Budget Duration `json:"matching_budget,omitempty"` // 0: the default
	Approval
	ServiceLimits
	Pages Pages `json:"pages,omitzero"`
}

func loadService(s *snapshot, c *control.ConfigRecord) error {
	s.names[c.Number] = c.Name
	if c.Deleted {
		return nil
	}
	var body serviceBody
	if err := json.Unmarshal(c.Body, &body); err != nil {
		return err
	}
	svc := newService(c.Number, c.Name)
	svc.title, svc.budget, svc.approval, svc.limits = body.Title, time.Duration(body.Budget), body.Approval, body.ServiceLimits
	svc.pages = body.Pages
	s.services[c.Name] = svc
	return nil
}

func loadChannel(s *snapshot, svc *service, c *control.ConfigRecord) error {
	ch := &Channel{Number: uint16(c.Number), Service: svc.name, Name: c.Name}
	if err := json.Unmarshal(c.Body, &ch.ChannelSettings); err != nil {
		return err
	}
	s.channels[ch.Number] = ch
	delete(svc.channels, c.Name)
	if !c.Deleted {
		svc.channels[c.Name] = ch
	}
	return nil
}

func (r *Registry) loadTopic(s *snapshot, svc *service, c *control.ConfigRecord) error {
	var body topicBody
	if err := json.Unmarshal(c.Body, &body); err != nil {
		return err
	}
	t, err := newTopic(svc, c.Number, c.Name, &body)
	if err != nil {
		return err
	}
	s.topics[t.Number] = t
	if c.Deleted {
		return nil
	}
	svc.topics[t.Name] = t
	return r.opt.Conditions.Define(t.key(), t.definition())
}

// newTopic makes the topic that body describes.
func newTopic(svc *service, number uint32, name string, body *topicBody) (*Topic, error) {
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
	generation, ok := parseGeneration(body.Generation)
	if !ok {
		return nil, inputerror.Invalid("/generation", "", "unknown generation %s", inputerror.Quote(body.Generation))
	}
	t := &Topic{Service: svc.name, Name: name, Number: number, Title: body.Title, Lane: lane, Schema: text, Key: body.Key, Series: body.Series,
		Template: body.Template, Expiry: time.Duration(body.Expiry), Quiet: body.QuietHours, Digest: body.Digest, Cadence: due, Generation: generation, ValidateData: check,
		topicState: topicState{service: svc.number, filters: &checkedTexts[fanfare.Cost]{}, body: body}}
	for _, r := range body.Rules {
		r.Rule.Number = r.Number
		t.Rules = append(t.Rules, r.Rule)
	}
	return t, nil
}

func loadTemplate(s *snapshot, svc *service, c *control.ConfigRecord) error {
	var body templateBody
	if err := json.Unmarshal(c.Body, &body); err != nil {
		return err
	}
	t := &TemplateSource{Number: c.Number, Service: svc.name, Name: c.Name, Version: body.Version, Made: body.Made, TemplateParts: body.TemplateParts}
	s.templates[t.Number] = t
	if c.Deleted {
		delete(svc.templates, c.Name)
	} else {
		svc.templates[c.Name] = t // records come in the order of their numbers
	}
	return nil
}
