package catalog

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/inputerror"
	"fanfare.dev/fanfare/internal/store/control"
)

// A Configuration is the immutable configuration at one time. The zero value is empty.
type Configuration struct{ Snapshot *Snapshot }

func (c Configuration) services() map[string]*ServiceSnapshot {
	if c.Snapshot == nil {
		return nil
	}
	return c.Snapshot.Services
}

// Services lists the services, sorted by name.
func (c Configuration) Services() []Service {
	var all []Service
	for _, name := range slices.Sorted(maps.Keys(c.services())) {
		all = append(all, *c.Service(name))
	}
	return all
}

// Service returns a service, or nil.
func (c Configuration) Service(name string) *Service {
	if svc := c.services()[name]; svc != nil {
		s := &Service{Name: name, Title: svc.Title, MatchingBudget: svc.Budget(), Approval: svc.Approval, ServiceLimits: svc.Limits, SendApproval: svc.SendApproval, Pages: svc.Pages, MailDomains: svc.MailDomains, Roles: svc.Roles, Notify: svc.Notify}
		if schema := c.Snapshot.SubscriberSchemas[svc.Number]; schema != nil {
			s.SubscriberSchema = schema.Text
		}
		return s
	}
	return nil
}

// of returns the snapshot of a service, which is empty if the service is unknown.
func (c Configuration) of(name string) *ServiceSnapshot {
	if svc := c.services()[name]; svc != nil {
		return svc
	}
	return &ServiceSnapshot{}
}

// Topics lists the topics of a service, sorted by name.
func (c Configuration) Topics(service string) []*Topic { return SortedValues(c.of(service).Topics) }

// TopicNumbered returns the topic with a number, unless it was deleted.
func (c Configuration) TopicNumbered(number uint32) (*Topic, bool) {
	t := c.Snapshot.Topics[number]
	if t == nil || c.Topic(t.Service, t.Name) != t {
		return nil, false
	}
	return t, true
}

// Channels lists the channels of a service, sorted by name.
func (c Configuration) Channels(service string) []*Channel {
	return SortedValues(c.of(service).Channels)
}

// Templates lists the current versions of the templates of a service, sorted by name.
func (c Configuration) Templates(service string) []*TemplateSource {
	return SortedValues(c.of(service).Templates)
}

// Topic returns a topic, or nil.
func (c Configuration) Topic(service, name string) *Topic { return c.of(service).Topics[name] }

// Channel returns a channel, or nil.
func (c Configuration) Channel(service, name string) *Channel { return c.of(service).Channels[name] }

// Template returns the current version of a template, or nil.
func (c Configuration) Template(service, name string) *TemplateSource {
	return c.of(service).Templates[name]
}

// Settings returns the settings of the topic in a document, without its rules.
func (t *Topic) Settings() TopicSettings { return t.Body.TopicSettings }

// Kinds of ConfigRecord.
const (
	KindService  = "service"
	KindChannel  = "channel"
	KindTopic    = "topic"
	KindRule     = "rule" // kept with its topic
	KindTemplate = "template"
	KindDraft    = "draft" // of a template
	KindWorker   = "worker"
	KindKey      = "key"
	KindSwitch   = "switch"

	KindSubscriberSchema = "subscriber_schema" // has the number of its service
)

func loadChannel(s *Snapshot, svc *ServiceSnapshot, c *control.ConfigRecord) error {
	ch := &Channel{Number: uint16(c.Number), Service: svc.Name, Name: c.Name}
	if err := json.Unmarshal(c.Body, &ch.ChannelSettings); err != nil {
		return err
	}
	s.Channels[ch.Number] = ch
	delete(svc.Channels, c.Name)
	if !c.Deleted {
		svc.Channels[c.Name] = ch
	}
	return nil
}

// ChannelsIn returns the channels in stored records, services first, sorted by service and name.
// It is for programs that read a store without a registry.
func ChannelsIn(records []control.ConfigRecord) ([]*Channel, error) {
	s := NewSnapshot()
	for i := range records {
		c := &records[i]
		switch c.Kind {
		case KindService:
			svc := NewService(c.Number, c.Name)
			s.Services[c.Name], s.ServiceNames[c.Number] = svc, c.Name
		case KindChannel:
			svc := s.Services[s.ServiceNames[c.Service]]
			if svc == nil || c.Deleted {
				continue
			}
			if err := loadChannel(s, svc, c); err != nil {
				return nil, err
			}
		}
	}
	all := slices.Collect(maps.Values(s.Channels))
	slices.SortFunc(all, func(a, b *Channel) int { return cmp.Or(cmp.Compare(a.Service, b.Service), cmp.Compare(a.Name, b.Name)) })
	return all, nil
}

// A Snapshot is the whole configuration at one time. It is immutable: a change builds another one.
type Snapshot struct {
	Services     map[string]*ServiceSnapshot
	ServiceNames map[uint32]string // of services, by number
	Topics       map[uint32]*Topic // by number, deleted ones too
	Channels     map[uint16]*Channel
	Templates    map[uint32]*TemplateSource // by number, every version
	Workers      map[uint32]*Worker         // by number, deleted ones too
	Drafts       map[DraftKey]DraftSlot

	SubscriberSchemas SubscriberSchemas
}

func NewSnapshot() *Snapshot {
	return &Snapshot{
		Services: map[string]*ServiceSnapshot{}, ServiceNames: map[uint32]string{}, Topics: map[uint32]*Topic{},
		Channels: map[uint16]*Channel{}, Templates: map[uint32]*TemplateSource{}, Workers: map[uint32]*Worker{},
		Drafts: map[DraftKey]DraftSlot{}, SubscriberSchemas: SubscriberSchemas{},
	}
}

// Clone copies the maps, so that the copy can be changed.
func (s *Snapshot) Clone() *Snapshot {
	c := &Snapshot{Services: make(map[string]*ServiceSnapshot, len(s.Services)), ServiceNames: maps.Clone(s.ServiceNames), Topics: maps.Clone(s.Topics),
		Channels: maps.Clone(s.Channels), Templates: maps.Clone(s.Templates), Workers: maps.Clone(s.Workers), Drafts: maps.Clone(s.Drafts), SubscriberSchemas: maps.Clone(s.SubscriberSchemas)}
	for name, svc := range s.Services {
		c.Services[name] = &ServiceSnapshot{Number: svc.Number, Name: svc.Name, Title: svc.Title, MatchingBudget: svc.MatchingBudget, Approval: svc.Approval, Limits: svc.Limits, SendApproval: svc.SendApproval, Pages: svc.Pages, MailDomains: svc.MailDomains, Roles: svc.Roles, Notify: svc.Notify,
			Topics: maps.Clone(svc.Topics), Channels: maps.Clone(svc.Channels), Templates: maps.Clone(svc.Templates), Workers: maps.Clone(svc.Workers)}
	}
	return c
}

// Service returns the service, or the error for users.
func (s *Snapshot) Service(name string) (*ServiceSnapshot, error) {
	if svc := s.Services[name]; svc != nil {
		return svc, nil
	}
	return nil, &fanfare.Error{Code: fanfare.NotFound, Message: "unknown service " + inputerror.Quote(name),
		Hint: inputerror.DidYouMean(name, maps.Keys(s.Services), "apply a document for this service first")}
}

func SortedValues[V any](m map[string]V) []V {
	all := make([]V, 0, len(m))
	for _, name := range slices.Sorted(maps.Keys(m)) {
		all = append(all, m[name])
	}
	return all
}

// ChannelNamed finds a channel by service/channel.
func (s *Snapshot) ChannelNamed(name string) (*Channel, error) {
	service, channel, _ := strings.Cut(name, "/")
	svc, err := s.Service(service)
	if err != nil {
		return nil, err
	}
	if svc.Channels[channel] == nil {
		return nil, &fanfare.Error{Code: fanfare.NotFound, Message: "unknown channel " + inputerror.Quote(name), Hint: "use the form service/channel; fanfare channel list shows the channels"}
	}
	return svc.Channels[channel], nil
}

// Load adds a record. It returns the topic if the record is one that is not deleted. Records of
// services come first.
func (s *Snapshot) Load(c *control.ConfigRecord) (*Topic, error) {
	switch c.Kind {
	case KindService:
		return nil, loadService(s, c)
	case KindSubscriberSchema:
		return nil, loadSubscriberSchema(s, c)
	}
	name, known := s.ServiceNames[c.Service]
	if !known {
		return nil, fmt.Errorf("unknown service number %d", c.Service)
	}
	svc := s.Services[name]
	if svc == nil { // the service is deleted
		svc = NewService(c.Service, name)
	}
	switch c.Kind {
	case KindChannel:
		return nil, loadChannel(s, svc, c)
	case KindTopic:
		return loadTopic(s, svc, c)
	case KindTemplate:
		return nil, loadTemplate(s, svc, c)
	case KindWorker:
		return nil, loadWorker(s, svc, c)
	case KindDraft:
		return nil, loadDraft(s, svc, c)
	}
	return nil, fmt.Errorf("unknown record kind %q; the database may have been written by a newer version", c.Kind)
}
