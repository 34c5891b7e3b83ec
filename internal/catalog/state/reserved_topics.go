package state

import (
	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/catalog"
)

// A reservedTopics is which services have declared topics that Fanfare publishes to.
type reservedTopics struct {
	of     *catalog.Snapshot
	topics []*catalog.Topic
}

// currentReservedTopics is that of the configuration of this moment.
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

// ReservedTopics returns the topics of all services to which Fanfare publishes.
func (r *Catalog) ReservedTopics() []*catalog.Topic {
	return r.currentReservedTopics(r.config.Load()).topics
}

// HasReservedSubscriptions reports whether a service has an active subscription to a topic that Fanfare
// publishes to. With "" it asks for any service.
func (r *Catalog) HasReservedSubscriptions(service, topic string) bool {
	for _, t := range r.ReservedTopics() {
		if (service == "" || t.Service == service) && t.Name == topic && r.opt.Conditions.Len(t.ConditionKey()) > 0 {
			return true
		}
	}
	return false
}

// ChannelHasReservedSubscriptions is Hears for the service of a channel, of which deleted ones are known, too;
// 0 asks for any service.
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
