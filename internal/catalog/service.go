package catalog

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/catalog/schema"
	"fanfare.dev/fanfare/internal/inputerror"
	"fanfare.dev/fanfare/internal/store/control"
)

// Rule is that of a kind.
func (s *BounceSettings) Rule(kind control.BounceKind) *BounceRule { return s.Rules()[kind-1] }

// BounceSettings say after which bounces a service gives an address up. A rule that
// is the zero one is the default of its kind.
type BounceSettings struct {
	Unknown   BounceRule `json:"unknown,omitzero"`   // status and words both say that there is no such mailbox
	Hard      BounceRule `json:"hard,omitzero"`      // one of the two says so, or the domain is none
	Soft      BounceRule `json:"soft,omitzero"`      // it came to nothing for another reason, none of which is the sender
	Full      BounceRule `json:"full,omitzero"`      // the mailbox has no room
	Complaint BounceRule `json:"complaint,omitzero"` // a reader called it junk
}

// A BounceRule gives an address up after so many messages that came back within
// some days, the last of them so many days behind the first.
type BounceRule struct {
	After      int  `json:"after,omitempty"`
	WithinDays int  `json:"within_days,omitempty"` // 30
	OverDays   int  `json:"over_days,omitempty"`   // 0: they may come at once
	ForDays    int  `json:"for_days,omitempty"`    // 0: for good
	Never      bool `json:"never,omitempty"`       // instead of all that: nobody is given up
}

// What the rules of bounces may say. MaxBounceDays is how long a bounce is of any
// use.
const (
	MaxBounceDays  = 180
	MaxBounces     = 100
	MaxGivenUpDays = 3650
	BounceWithin   = 30
)

// DefaultBounces are in force where a service says nothing else. They are those of
// large senders: an address that nobody has is not tried again, and a mailbox that
// is full, or a server that is down, has weeks.
var DefaultBounces = BounceSettings{
	Unknown:   BounceRule{After: 1, WithinDays: BounceWithin},
	Hard:      BounceRule{After: 3, WithinDays: BounceWithin},
	Soft:      BounceRule{After: 7, WithinDays: 14, OverDays: 4, ForDays: 90},
	Full:      BounceRule{After: 7, WithinDays: 60, OverDays: 30, ForDays: 90},
	Complaint: BounceRule{After: 1, WithinDays: BounceWithin},
}

func (s *BounceSettings) Rules() [5]*BounceRule {
	return [...]*BounceRule{&s.Unknown, &s.Hard, &s.Soft, &s.Full, &s.Complaint}
}

// Reached reports whether what came back, at some times, is enough.
func (b *BounceRule) Reached(at []time.Time, now time.Time) bool {
	if b.Never {
		return false
	}
	const day = 24 * time.Hour
	begin := now.Add(-time.Duration(b.WithinDays) * day)
	at = slices.DeleteFunc(slices.Clone(at), func(t time.Time) bool { return t.Before(begin) })
	if len(at) == 0 || len(at) < b.After {
		return false
	}
	first, last := slices.MinFunc(at, time.Time.Compare), slices.MaxFunc(at, time.Time.Compare)
	return last.Sub(first) >= time.Duration(b.OverDays)*day
}

// Until is until when an address that is given up now stays so; zero for good.
func (b *BounceRule) Until(now time.Time) time.Time {
	if b.ForDays == 0 {
		return time.Time{}
	}
	return now.AddDate(0, 0, b.ForDays)
}

// What one event may take, at most, in conditions to which no index leads: all of
// its topic together. It is the service's budget, for matching is shared with the
// events of others.
const (
	defaultBudget = time.Millisecond
	MaxBudget     = 100 * time.Millisecond
)

// Budget is what an event of the service may take in conditions to which no index
// leads.
func (s *ServiceSnapshot) Budget() time.Duration {
	if s.MatchingBudget == 0 {
		return defaultBudget
	}
	return s.MatchingBudget
}

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

// ServiceBody is what is kept of a service.
type ServiceBody struct {
	Title  string   `json:"title,omitempty"`
	Budget Duration `json:"matching_budget,omitempty"` // 0: the default
	Approval
	ServiceLimits
	Pages Pages `json:"pages,omitzero"`
}

func loadService(s *Snapshot, c *control.ConfigRecord) error {
	s.ServiceNames[c.Number] = c.Name
	if c.Deleted {
		return nil
	}
	var body ServiceBody
	if err := json.Unmarshal(c.Body, &body); err != nil {
		return err
	}
	svc := NewService(c.Number, c.Name)
	svc.Title, svc.MatchingBudget, svc.Approval, svc.Limits = body.Title, time.Duration(body.Budget), body.Approval, body.ServiceLimits
	svc.Pages = body.Pages
	s.Services[c.Name] = svc
	return nil
}

// Pages is how the pages of a service look that its recipients see, and what they and
// the mails around them say.
type Pages struct {
	Color     string                       `json:"color,omitempty"`     // #rrggbb; text on it is black or white, whichever is easier to read
	Logo      string                       `json:"logo,omitempty"`      // data:image/png;base64,...
	Links     []PageLink                   `json:"links,omitempty"`     // at the foot
	Texts     map[string]map[string]string `json:"texts,omitempty"`     // by language tag, by name
	Templates map[string]string            `json:"templates,omitempty"` // of mails, by what they are for
	Goodbye   bool                         `json:"goodbye,omitempty"`   // a mail says what has ended
}

// A PageLink leads from a page to somewhere else.
type PageLink struct {
	Title string `json:"title"`
	URL   string `json:"url"`
}

// PageMails are the mails that a service may have templates of its own for.
var PageMails = []string{"confirm", "known", "moved", "goodbye", "link"}

// ServiceLimits bound what all channels of a service send together, and to whom
// they send no more. The zero ServiceLimits are without bound, and the default
// rules of bounces.
type ServiceLimits struct {
	Rate       Rate           `json:"rate,omitzero"`
	DailyQuota DailyQuota     `json:"daily_quota,omitzero"`
	Bounces    BounceSettings `json:"bounces,omitzero"`
}

// A ServiceSnapshot is what belongs to one service and is not deleted.
type ServiceSnapshot struct {
	Number         uint32
	Name           string
	Title          string
	MatchingBudget time.Duration // 0: the default
	Approval       Approval
	Limits         ServiceLimits
	Pages          Pages
	Topics         map[string]*Topic
	Channels       map[string]*Channel
	Templates      map[string]*TemplateSource // what is published
}

func NewService(number uint32, name string) *ServiceSnapshot {
	return &ServiceSnapshot{Number: number, Name: name,
		Topics: map[string]*Topic{}, Channels: map[string]*Channel{}, Templates: map[string]*TemplateSource{}}
}

// A subscriberSchema is what the attributes of a service's subscribers have to
// be like. It is asked when attributes are put; those that were put before it
// stay as they are.
type SubscriberSchema struct {
	Text  json.RawMessage // JSON Schema
	check func(json.RawMessage) error
}

// SubscriberSchemas keeps the schemas of services by their numbers.
type SubscriberSchemas map[uint32]*SubscriberSchema

func NewSubscriberSchema(text json.RawMessage) (*SubscriberSchema, error) {
	check, err := schema.Compile(text)
	if err != nil {
		return nil, err
	}
	return &SubscriberSchema{text, check}, nil
}

// CheckAttributes checks attributes, of which none are an empty object.
func (s SubscriberSchemas) CheckAttributes(service uint32, attributes json.RawMessage) error {
	schema := s[service]
	if schema == nil {
		return nil
	}
	if len(attributes) == 0 {
		attributes = json.RawMessage("{}")
	}
	err := schema.check(attributes)
	if err == nil {
		return nil
	}
	wrong := inputerror.WithPrefix("", err)
	for _, e := range append([]*fanfare.Error{wrong}, wrong.Details...) {
		e.Pointer = "/attributes" + strings.TrimPrefix(e.Pointer, "/data")
	}
	return wrong
}

// loadSubscriberSchema puts a kept schema into s.
func loadSubscriberSchema(s *Snapshot, c *control.ConfigRecord) error {
	delete(s.SubscriberSchemas, c.Service)
	if c.Deleted {
		return nil
	}
	schema, err := NewSubscriberSchema(c.Body)
	if err == nil {
		s.SubscriberSchemas[c.Service] = schema
	}
	return err
}
