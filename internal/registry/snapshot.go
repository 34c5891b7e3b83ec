package registry

import (
	"maps"
	"slices"

	"fanfare.dev/fanfare/internal/catalog"
)

// Services lists the services, sorted.
func (r *Registry) Services() []string { return slices.Sorted(maps.Keys(r.config.Load().Services)) }

// Topic returns a topic that is not deleted.
func (r *Registry) Topic(service, name string) (*catalog.Topic, bool) {
	if svc := r.config.Load().Services[service]; svc != nil {
		t, ok := svc.Topics[name]
		return t, ok
	}
	return nil, false
}

// Topics lists the topics of a service, sorted by name.
func (r *Registry) Topics(service string) []*catalog.Topic {
	svc := r.config.Load().Services[service]
	if svc == nil {
		return nil
	}
	return catalog.SortedValues(svc.Topics)
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
func (r *Registry) Channel(number uint16) (*catalog.Channel, bool) {
	c, ok := r.config.Load().Channels[number]
	return c, ok
}

// ChannelNamed returns a channel that is not deleted.
func (r *Registry) ChannelNamed(service, name string) (*catalog.Channel, bool) {
	if svc := r.config.Load().Services[service]; svc != nil {
		c, ok := svc.Channels[name]
		return c, ok
	}
	return nil, false
}

// Channels lists all channels that are not deleted, by service and name.
func (r *Registry) Channels() []*catalog.Channel {
	s := r.config.Load()
	var all []*catalog.Channel
	for _, name := range slices.Sorted(maps.Keys(s.Services)) {
		all = append(all, catalog.SortedValues(s.Services[name].Channels)...)
	}
	return all
}

// ClosedChannels lists the channels that were deleted, by number.
func (r *Registry) ClosedChannels() []*catalog.Channel {
	s := r.config.Load()
	var closed []*catalog.Channel
	for _, number := range slices.Sorted(maps.Keys(s.Channels)) {
		c := s.Channels[number]
		if svc := s.Services[c.Service]; svc == nil || svc.Channels[c.Name] != c {
			closed = append(closed, c)
		}
	}
	return closed
}

// TemplateVersion returns the number of the current version of a template.
func (r *Registry) TemplateVersion(service, name string) (uint32, bool) {
	if svc := r.config.Load().Services[service]; svc != nil {
		if t := svc.Templates[name]; t != nil {
			return t.Number, true
		}
	}
	return 0, false
}

// Template returns the version with this number. It never changes.
func (r *Registry) Template(number uint32) (catalog.TemplateSource, bool) {
	t := r.config.Load().Templates[number]
	if t == nil {
		return catalog.TemplateSource{}, false
	}
	return *t, true
}
