package registry

import (
	"maps"
	"slices"
	"time"

	"fanfare.dev/fanfare/internal/inputerror"

	"fanfare.dev/fanfare"
)

// A snapshot is the whole configuration at one time. It is never changed: who
// changes the configuration builds another and puts it in place.
type snapshot struct {
	services  map[string]*service
	names     map[uint32]string // of services, by number
	topics    map[uint32]*Topic // by number, deleted ones too
	channels  map[uint16]*Channel
	templates map[uint32]*TemplateSource // by number, every version
	drafts    map[draftKey]draftPlace

	subscribers subscriberSchemas
}

// A service is what belongs to one service and is not deleted.
type service struct {
	number    uint32
	name      string
	title     string
	budget    time.Duration // 0: the default
	approval  Approval
	limits    ServiceLimits
	pages     Pages
	topics    map[string]*Topic
	channels  map[string]*Channel
	templates map[string]*TemplateSource // what is published
}

func newSnapshot() *snapshot {
	return &snapshot{
		services: map[string]*service{}, names: map[uint32]string{}, topics: map[uint32]*Topic{},
		channels: map[uint16]*Channel{}, templates: map[uint32]*TemplateSource{},
		drafts: map[draftKey]draftPlace{}, subscribers: subscriberSchemas{},
	}
}

func newService(number uint32, name string) *service {
	return &service{number: number, name: name,
		topics: map[string]*Topic{}, channels: map[string]*Channel{}, templates: map[string]*TemplateSource{}}
}

// clone copies the maps, so that the copy can be changed.
func (s *snapshot) clone() *snapshot {
	c := &snapshot{services: make(map[string]*service, len(s.services)), names: maps.Clone(s.names), topics: maps.Clone(s.topics),
		channels: maps.Clone(s.channels), templates: maps.Clone(s.templates), drafts: maps.Clone(s.drafts), subscribers: maps.Clone(s.subscribers)}
	for name, svc := range s.services {
		c.services[name] = &service{number: svc.number, name: svc.name, title: svc.title, budget: svc.budget, approval: svc.approval, limits: svc.limits, pages: svc.pages,
			topics: maps.Clone(svc.topics), channels: maps.Clone(svc.channels), templates: maps.Clone(svc.templates)}
	}
	return c
}

// service returns the service, or the error for users.
func (s *snapshot) service(name string) (*service, error) {
	if svc := s.services[name]; svc != nil {
		return svc, nil
	}
	return nil, &fanfare.Error{Code: fanfare.NotFound, Message: "unknown service " + inputerror.Quote(name),
		Hint: inputerror.DidYouMean(name, maps.Keys(s.services), "apply a document that names it")}
}

// Services lists the services, sorted.
func (r *Registry) Services() []string { return slices.Sorted(maps.Keys(r.config.Load().services)) }

// Topic returns a topic that is not deleted.
func (r *Registry) Topic(service, name string) (*Topic, bool) {
	if svc := r.config.Load().services[service]; svc != nil {
		t, ok := svc.topics[name]
		return t, ok
	}
	return nil, false
}

// Topics lists the topics of a service, sorted by name.
func (r *Registry) Topics(service string) []*Topic {
	svc := r.config.Load().services[service]
	if svc == nil {
		return nil
	}
	return sortedValues(svc.topics)
}

// KeySeries returns the series of each topic that has a key, by the number of the topic.
func (r *Registry) KeySeries() map[uint32]uint32 {
	all := map[uint32]uint32{}
	for _, service := range r.Services() {
		for _, topic := range r.Topics(service) {
			if topic.Key != "" {
				all[topic.Number] = topic.Series
			}
		}
	}
	return all
}

// Channel returns the channel with this number, even a deleted one, for what is
// still under way.
func (r *Registry) Channel(number uint16) (*Channel, bool) {
	c, ok := r.config.Load().channels[number]
	return c, ok
}

// ChannelNamed returns a channel that is not deleted.
func (r *Registry) ChannelNamed(service, name string) (*Channel, bool) {
	if svc := r.config.Load().services[service]; svc != nil {
		c, ok := svc.channels[name]
		return c, ok
	}
	return nil, false
}

// Channels lists all channels that are not deleted, by service and name.
func (r *Registry) Channels() []*Channel {
	s := r.config.Load()
	var all []*Channel
	for _, name := range slices.Sorted(maps.Keys(s.services)) {
		all = append(all, sortedValues(s.services[name].channels)...)
	}
	return all
}

// ClosedChannels lists the channels that were deleted, by number.
func (r *Registry) ClosedChannels() []*Channel {
	s := r.config.Load()
	var closed []*Channel
	for _, number := range slices.Sorted(maps.Keys(s.channels)) {
		c := s.channels[number]
		if svc := s.services[c.Service]; svc == nil || svc.channels[c.Name] != c {
			closed = append(closed, c)
		}
	}
	return closed
}

// TemplateVersion returns the number of the current version of a template.
func (r *Registry) TemplateVersion(service, name string) (uint32, bool) {
	if svc := r.config.Load().services[service]; svc != nil {
		if t := svc.templates[name]; t != nil {
			return t.Number, true
		}
	}
	return 0, false
}

// Template returns the version with this number. It never changes.
func (r *Registry) Template(number uint32) (TemplateSource, bool) {
	t := r.config.Load().templates[number]
	if t == nil {
		return TemplateSource{}, false
	}
	return *t, true
}

func sortedValues[V any](m map[string]V) []V {
	all := make([]V, 0, len(m))
	for _, name := range slices.Sorted(maps.Keys(m)) {
		all = append(all, m[name])
	}
	return all
}
