package registry

import (
	"encoding/json"
	"slices"
	"strings"

	"fanfare.dev/fanfare/internal/inputerror"

	"fanfare.dev/fanfare"
)

// reservedSchemas are what the events of topics that Fanfare publishes to look like,
// so that conditions are checked against them. What an event has not is left out.
var reservedSchemas = map[string]json.RawMessage{
	fanfare.TopicDeliveries: outcomesSchema,
	fanfare.TopicFailures:   outcomesSchema,
	fanfare.TopicSubscriptions: json.RawMessage(`{"type":"object","required":["kind","source","topic","count","subscriptions"],"properties":{` +
		`"kind":{"type":"string"},"source":{"type":"string"},"reason":{"type":"string"},"topic":{"type":"string"},"channel":{"type":"string"},` +
		`"count":{"type":"integer"},"subscriptions":{"type":"array","items":{"type":"object","required":["subscription","at"],"properties":{` +
		`"subscription":{"type":"string"},"subscriber":{"type":"string"},"at":{"type":"string"},"fields":{"type":"array","items":{"type":"string"}}}}}}}`),
	fanfare.TopicSuppressions: json.RawMessage(`{"type":"object","required":["kind","source","reason","count","suppressions"],"properties":{` +
		`"kind":{"type":"string"},"source":{"type":"string"},"reason":{"type":"string"},"all_services":{"type":"boolean"},` +
		`"count":{"type":"integer"},"suppressions":{"type":"array","items":{"type":"object","required":["subscriber","address","at"],"properties":{` +
		`"subscriber":{"type":"string"},"address":{"type":"string"},"at":{"type":"string"},"until":{"type":"string"}}}}}}`),
}

var outcomesSchema = json.RawMessage(`{"type":"object","required":["kind","event","count","deliveries"],"properties":{` +
	`"kind":{"type":"string"},"class":{"type":"string"},"channel":{"type":"string"},"topic":{"type":"string"},` +
	`"event":{"type":"string"},"id":{"type":"string"},"source":{"type":"string"},"reference":{"type":"string"},` +
	`"count":{"type":"integer"},"deliveries":{"type":"array","items":{"type":"object","required":["delivery","attempt","at"],"properties":{` +
	`"delivery":{"type":"string"},"attempt":{"type":"integer"},"at":{"type":"string"},"subscriber":{"type":"string"},` +
	`"subscriptions":{"type":"array","items":{"type":"string"}},"code":{"type":"integer"},"text":{"type":"string"}}}}}}`)

// checkReserved refuses a new topic with a name of ours that is none of ours, and one
// of ours that would look different.
func (pl *plan) checkReserved(at, name string, spec *TopicSpec) bool {
	if !fanfare.ReservedTopic(name) || pl.svc.topics[name] != nil && spec.Schema == nil && spec.Key == "" {
		return true
	}
	switch {
	case !slices.Contains(fanfare.ReservedTopics, name):
		pl.fail(at, inputerror.Invalid("", "take another name, or one of "+strings.Join(fanfare.ReservedTopics, ", "), "names that begin with %s are Fanfare's own, and there is no topic %s", fanfare.ReservedPrefix, inputerror.Quote(name)))
	case spec.Schema != nil:
		pl.fail(at, inputerror.Invalid("/schema", "leave it out", "the events of %s are Fanfare's own, and so is their schema", name))
	case spec.Key != "":
		pl.fail(at, inputerror.Invalid("/key", "leave it out", "the events of %s are about nothing that has a last state", name))
	default:
		return true
	}
	return false
}

// A heard is which services have declared topics that Fanfare publishes to.
type heard struct {
	of     *snapshot
	topics []*Topic
}

// heardNow is that of the configuration of this moment.
func (r *Registry) heardNow(conf *snapshot) *heard {
	now := r.heard.Load()
	if now != nil && now.of == conf {
		return now
	}
	now = &heard{of: conf}
	for _, svc := range conf.services {
		for _, name := range fanfare.ReservedTopics {
			if t := svc.topics[name]; t != nil {
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
		if (service == "" || t.Service == service) && t.Name == topic && r.opt.Conditions.Len(t.key()) > 0 {
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
	c := conf.channels[channel]
	if c == nil {
		return r.Hears("", topic)
	}
	svc := conf.services[c.Service]
	if svc == nil {
		return false
	}
	t := svc.topics[topic]
	return t != nil && r.opt.Conditions.Len(t.key()) > 0
}

// OfReserved reports whether a subscription is one to a topic that Fanfare publishes
// to: what becomes of its messages is told to nobody.
func (r *Registry) OfReserved(s *SubscriptionRow) bool {
	t := r.config.Load().topics[s.topic]
	return t != nil && fanfare.ReservedTopic(t.Name)
}
