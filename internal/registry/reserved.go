package registry

import (
	"fanfare.dev/fanfare/internal/catalog"

	"fanfare.dev/fanfare"
)

// A heard is which services have declared topics that Fanfare publishes to.
type heard struct {
	of     *catalog.Snapshot
	topics []*catalog.Topic
}

// heardNow is that of the configuration of this moment.
func (r *Registry) heardNow(conf *catalog.Snapshot) *heard {
	now := r.heard.Load()
	if now != nil && now.of == conf {
		return now
	}
	now = &heard{of: conf}
	for _, svc := range conf.Services {
		for _, name := range fanfare.ReservedTopics {
			if t := svc.Topics[name]; t != nil {
				now.topics = append(now.topics, t)
			}
		}
	}
	r.heard.Store(now)
	return now
}

// Hears reports whether a service has an active subscription to a topic that Fanfare
// publishes to. With "" it asks for any service.
func (r *Registry) Hears(service, topic string) bool {
	for _, t := range r.heardNow(r.config.Load()).topics {
		if (service == "" || t.Service == service) && t.Name == topic && r.opt.Conditions.Len(t.ConditionKey()) > 0 {
			return true
		}
	}
	return false
}

// HearsOf is Hears for the service of a channel, of which deleted ones are known, too;
// 0 asks for any service.
func (r *Registry) HearsOf(channel uint16, topic string) bool {
	conf := r.config.Load()
	if len(r.heardNow(conf).topics) == 0 {
		return false
	}
	c := conf.Channels[channel]
	if c == nil {
		return r.Hears("", topic)
	}
	svc := conf.Services[c.Service]
	if svc == nil {
		return false
	}
	t := svc.Topics[topic]
	return t != nil && r.opt.Conditions.Len(t.ConditionKey()) > 0
}

// OfReserved reports whether a subscription is one to a topic that Fanfare publishes
// to: what becomes of its messages is told to nobody.
func (r *Registry) OfReserved(s *SubscriptionRow) bool {
	t := r.config.Load().Topics[s.topic]
	return t != nil && fanfare.ReservedTopic(t.Name)
}
