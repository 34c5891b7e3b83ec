package state

import (
	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/catalog"
)

// reservedTopics caches the reserved topics that services have declared.
type reservedTopics struct {
	of     *catalog.Snapshot
	topics []*catalog.Topic
}

// currentReservedTopics returns the reserved topics of the current configuration.
func (r *Catalog) currentReservedTopics(conf *catalog.Snapshot) *reservedTopics {
	now := r.reserved.Load()
	if now != nil && now.of == conf {
		return now
	}
	now = &reservedTopics{of: conf}
	for _, svc := range conf.Services {
		for _, name := range fanfare.ReservedTopics {
			if t := svc.Topics[name]; t != nil {
				now.topics = append(now.topics, t)
			}
		}
	}
	r.reserved.Store(now)
	return now
}

// ReservedTopics returns the reserved topics of all services.
func (r *Catalog) ReservedTopics() []*catalog.Topic {
	return r.currentReservedTopics(r.config.Load()).topics
}

// HasReservedSubscriptions reports whether a service has an active subscription to a reserved
// topic. "" means any service.
func (r *Catalog) HasReservedSubscriptions(service, topic string) bool {
	for _, t := range r.ReservedTopics() {
		if (service == "" || t.Service == service) && t.Name == topic && r.opt.Conditions.Len(t.ConditionKey()) > 0 {
			return true
		}
	}
	return false
}

// ChannelHasReservedSubscriptions is HasReservedSubscriptions for the service of a channel, even a
// deleted one. 0 means any service.
func (r *Catalog) ChannelHasReservedSubscriptions(channel uint16, topic string) bool {
	conf := r.config.Load()
	if len(r.currentReservedTopics(conf).topics) == 0 {
		return false
	}
	c := conf.Channels[channel]
	if c == nil {
		return r.HasReservedSubscriptions("", topic)
	}
	svc := conf.Services[c.Service]
	if svc == nil {
		return false
	}
	t := svc.Topics[topic]
	return t != nil && r.opt.Conditions.Len(t.ConditionKey()) > 0
}
