package registry

import (
	"encoding/json"
	"maps"
	"slices"
	"time"

	"fanfare.dev/fanfare/internal/inputerror"

	"fanfare.dev/fanfare"
)

// A Configuration is all that is configured at one moment. It never changes. In
// the zero one there is nothing.
type Configuration struct{ s *snapshot }

func (c Configuration) services() map[string]*service {
	if c.s == nil {
		return nil
	}
	return c.s.services
}

// Configuration returns what is configured now.
func (r *Registry) Configuration() Configuration { return Configuration{r.config.Load()} }

// A Service is a tenant.
type Service struct {
	Name  string
	Title string

	MatchingBudget time.Duration // what an event may take in conditions to which no index leads

	Approval
	ServiceLimits

	Pages Pages // how they look

	SubscriberSchema json.RawMessage // of the attributes of its subscribers, or nil
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
		s := &Service{Name: name, Title: svc.title, MatchingBudget: svc.Budget(), Approval: svc.approval, ServiceLimits: svc.limits, Pages: svc.pages}
		if schema := c.s.subscribers[svc.number]; schema != nil {
			s.SubscriberSchema = schema.text
		}
		return s
	}
	return nil
}

// of is the service's part, an empty one for an unknown service.
func (c Configuration) of(name string) *service {
	if svc := c.services()[name]; svc != nil {
		return svc
	}
	return &service{}
}

// Topics, Channels and Templates list what a service has, sorted by name.
func (c Configuration) Topics(service string) []*Topic { return sortedValues(c.of(service).topics) }

// TopicNumbered returns the topic with a number; false where it was deleted.
func (c Configuration) TopicNumbered(number uint32) (*Topic, bool) {
	t := c.s.topics[number]
	if t == nil || c.Topic(t.Service, t.Name) != t {
		return nil, false
	}
	return t, true
}

// Channels is like Topics.
func (c Configuration) Channels(service string) []*Channel {
	return sortedValues(c.of(service).channels)
}

// Templates is like Topics; of each the current version.
func (c Configuration) Templates(service string) []*TemplateSource {
	return sortedValues(c.of(service).templates)
}

// Topic returns a topic, or nil.
func (c Configuration) Topic(service, name string) *Topic { return c.of(service).topics[name] }

// Channel returns a channel, or nil.
func (c Configuration) Channel(service, name string) *Channel { return c.of(service).channels[name] }

// Template returns the current version of a template, or nil.
func (c Configuration) Template(service, name string) *TemplateSource {
	return c.of(service).templates[name]
}

// Settings is what a document says about the topic, but for its rules.
func (t *Topic) Settings() TopicSettings { return t.body.TopicSettings }

func unknownTopic(svc *service, name string) error {
	return &fanfare.Error{Code: fanfare.NotFound, Message: "the service has no topic " + inputerror.Quote(name), Hint: inputerror.DidYouMean(name, maps.Keys(svc.topics), "put one first")}
}
