package state

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"sync/atomic"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/catalog"
	"fanfare.dev/fanfare/internal/catalog/apply"
	"fanfare.dev/fanfare/internal/catalog/audit"
	"fanfare.dev/fanfare/internal/condition"
	"fanfare.dev/fanfare/internal/store/control"
)

// Hold returns why a broadcast must wait for approval, or "". The limit of the topic has
// precedence over that of the service. Each of them can exempt urgent broadcasts. A direct message
// has no topic. The parts of a send are not held.
func (r *Catalog) Hold(posted *fanfare.AcceptedEvent, messages int64) string {
	conf := r.config.Load()
	svc := conf.Services[posted.Service]
	if svc == nil || posted.Direct != nil && posted.Direct.Send != "" { // a send was approved as a whole
		return ""
	}
	rule, whose := svc.Approval, "service "+svc.Name
	if t := svc.Topics[posted.Topic]; t != nil {
		if t.Body.HoldAbove > 0 {
			rule, whose = t.Body.Approval, "topic "+t.Name
		}
		rule.HoldExemptUrgent = rule.HoldExemptUrgent || t.Body.HoldExemptUrgent
	}
	switch {
	case rule.HoldAbove == 0 || messages <= int64(rule.HoldAbove):
		return ""
	case rule.HoldExemptUrgent && posted.Lane == fanfare.Urgent:
		return ""
	}
	return "waits for approval: " + strconv.FormatInt(messages, 10) + " messages are more than the limit of " + strconv.Itoa(rule.HoldAbove) + " of " + whose
}

// SendsNeedApproval reports whether a second person must approve the sends of a service.
func (r *Catalog) SendsNeedApproval(service string) bool {
	svc := r.config.Load().Services[service]
	return svc == nil || svc.SendApproval != catalog.SendApprovalNone
}

// Bounces returns the complete bounce rules of a service; the defaults if the service is unknown.
func (r *Catalog) Bounces(service string) catalog.BounceSettings {
	set := r.ServiceLimits(service).Bounces
	for i, rule := range set.Rules() {
		if *rule == (catalog.BounceRule{}) {
			*rule = *catalog.DefaultBounces.Rules()[i]
		}
	}
	return set
}

// A Catalog has the configuration that is in force: services with their topics, templates and
// channels, keys, pauses, rates and quotas. Reads take no lock or a short one. Changes are made by
// the Writer and are durable when a method returns. It is safe for concurrent use.
type Catalog struct {
	opt      Options
	config   atomic.Pointer[catalog.Snapshot]
	keyring  keyring
	pauses   pauses
	rates    rates
	quotas   quotas
	reserved atomic.Pointer[reservedTopics]
	writer   Writer
}

// Options are the parts of a Catalog.
type Options struct {
	Store      Store
	Conditions TopicIndex
	Apply      apply.Options
	Vault      Vault // seals the secrets of Notify keys; nil: there can be none
	Logger     *slog.Logger
}

// A Store reads from the control store.
type Store interface {
	File(ctx context.Context, sum fanfare.Sum) ([]byte, error)
	AuditEntries(ctx context.Context, from, to int64, visit func(*audit.Entry) bool) error
	AuditBounds(ctx context.Context) (oldest, latest int64, err error)
}

// A TopicIndex is the match index as far as topics are concerned.
type TopicIndex interface {
	Define(key condition.Key, def condition.Definition) error
	CheckDefine(key condition.Key, def condition.Definition) error
	Len(key condition.Key) int
}

// A Writer makes one change after the other.
type Writer interface {
	// Run calls f while no other change is in progress. f may call Commit and Usage.
	Run(ctx context.Context, f func() error) error

	// Commit stores a batch durably, all of it or nothing.
	Commit(b *control.Batch) error

	// AddEntry stores an audit entry durably.
	AddEntry(ctx context.Context, e *audit.Entry) error

	// Usage returns the numbers of subscriptions that use the configuration.
	Usage() *Usage
}

// Usage counts the subscriptions that use the configuration.
type Usage struct {
	Channels map[uint16]int64    // subscriptions that have not ended, by channel
	Paused   map[TopicRule]int64 // paused subscriptions, by topic and rule
	Waiting  map[uint32]int64    // subscriptions with a cadence, by topic
}

// A TopicRule is a rule of a topic. Rule 0 is none.
type TopicRule struct{ Topic, Rule uint32 }

// New returns an empty Catalog. Load and SetSnapshot fill it.
func New(opt Options, w Writer) *Catalog { return &Catalog{opt: opt, writer: w} }

// Snapshot returns the configuration that is in force.
func (r *Catalog) Snapshot() *catalog.Snapshot { return r.config.Load() }

// SetSnapshot puts the configuration in force that was loaded.
func (r *Catalog) SetSnapshot(s *catalog.Snapshot) { r.config.Store(s) }

// Load adds a record to the catalog or to the snapshot that is being loaded. Records of services
// come first.
func (r *Catalog) Load(s *catalog.Snapshot, c *control.ConfigRecord) error {
	switch c.Kind {
	case catalog.KindKey:
		return r.loadKey(s, c)
	case catalog.KindSwitch:
		return r.loadSwitch(c)
	case kindRate:
		return r.loadRate(c)
	case kindQuota:
		return r.loadQuota(c)
	}
	t, err := s.Load(c)
	if err != nil || t == nil {
		return err
	}
	return r.opt.Conditions.Define(t.ConditionKey(), t.ConditionDefinition())
}

// readError returns the error for users of a failed read.
func (r *Catalog) readError(err error) error {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	r.opt.Logger.Error("the configuration could not be read from the store", "error", err)
	return control.UserError(err, "the configuration could not be read from the store")
}

// Configuration returns the current configuration.
func (r *Catalog) Configuration() catalog.Configuration {
	return catalog.Configuration{Snapshot: r.config.Load()}
}

// DigestTemplate returns the current version of the digest template of a topic. If the digest or
// the template was deleted, it returns the last version. It returns false if the topic never had a
// digest.
func (r *Catalog) DigestTemplate(t *catalog.Topic) (number uint32, ok bool) {
	name := t.LatestDigest().Template
	if number, ok = r.TemplateVersion(t.Service, name); ok || name == "" {
		return number, ok
	}
	for _, past := range r.Configuration().TemplateVersions(t.Service, name) {
		number, ok = past.Number, true
	}
	return number, ok
}

// Generation returns the generation setting of a topic, or the default.
func (r *Catalog) Generation(service, topic string) catalog.Generation {
	t, ok := r.Topic(service, topic)
	if !ok {
		return catalog.Generation{}
	}
	return t.Generation
}

// RelayDrained reports whether an operator has drained a relay of a channel.
func (r *Catalog) RelayDrained(c *catalog.Channel, relay string) bool {
	is, _ := r.pauses.get(catalog.RelayScope(c, relay))
	return is.Paused
}

// ServiceLimits returns the limits of a service, or zero limits.
func (r *Catalog) ServiceLimits(service string) catalog.ServiceLimits {
	if svc := r.config.Load().Services[service]; svc != nil {
		return svc.Limits
	}
	return catalog.ServiceLimits{}
}

// Services lists the services, sorted.
func (r *Catalog) Services() []string { return slices.Sorted(maps.Keys(r.config.Load().Services)) }

// Topic returns a topic that is not deleted.
func (r *Catalog) Topic(service, name string) (*catalog.Topic, bool) {
	if svc := r.config.Load().Services[service]; svc != nil {
		t, ok := svc.Topics[name]
		return t, ok
	}
	return nil, false
}

// Topics lists the topics of a service, sorted by name.
func (r *Catalog) Topics(service string) []*catalog.Topic {
	svc := r.config.Load().Services[service]
	if svc == nil {
		return nil
	}
	return catalog.SortedValues(svc.Topics)
}

// KeySeries returns the series of each topic that has a key, by the number of the topic.
func (r *Catalog) KeySeries() map[uint32]uint32 {
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

// Channel returns the channel with this number, even a deleted one, because deliveries may still
// use it.
func (r *Catalog) Channel(number uint16) (*catalog.Channel, bool) {
	c, ok := r.config.Load().Channels[number]
	return c, ok
}

// ChannelNamed returns a channel that is not deleted.
func (r *Catalog) ChannelNamed(service, name string) (*catalog.Channel, bool) {
	if svc := r.config.Load().Services[service]; svc != nil {
		c, ok := svc.Channels[name]
		return c, ok
	}
	return nil, false
}

// Channels lists all channels that are not deleted, by service and name.
func (r *Catalog) Channels() []*catalog.Channel {
	s := r.config.Load()
	var all []*catalog.Channel
	for _, name := range slices.Sorted(maps.Keys(s.Services)) {
		all = append(all, catalog.SortedValues(s.Services[name].Channels)...)
	}
	return all
}

// DeletedChannels lists the channels that were deleted, by number.
func (r *Catalog) DeletedChannels() []*catalog.Channel {
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
func (r *Catalog) TemplateVersion(service, name string) (uint32, bool) {
	if svc := r.config.Load().Services[service]; svc != nil {
		if t := svc.Templates[name]; t != nil {
			return t.Number, true
		}
	}
	return 0, false
}

// Template returns the version with this number. It never changes.
func (r *Catalog) Template(number uint32) (catalog.TemplateSource, bool) {
	t := r.config.Load().Templates[number]
	if t == nil {
		return catalog.TemplateSource{}, false
	}
	return *t, true
}
