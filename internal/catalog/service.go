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

// Rule returns the rule for a kind of bounce.
func (s *BounceSettings) Rule(kind control.BounceKind) *BounceRule { return s.Rules()[kind-1] }

// BounceSettings define after which bounces an address is suppressed. A zero rule takes the
// default of its kind.
type BounceSettings struct {
	Unknown   BounceRule `json:"unknown,omitzero"`   // the status and the text both say that the mailbox does not exist
	Hard      BounceRule `json:"hard,omitzero"`      // one of the two says so, or the domain does not exist
	Soft      BounceRule `json:"soft,omitzero"`      // delivery failed for another reason that is not the sender
	Full      BounceRule `json:"full,omitzero"`      // the mailbox is full
	Complaint BounceRule `json:"complaint,omitzero"` // a reader reported spam
}

// A BounceRule suppresses an address after a number of bounces within some days, if the last one
// is at least OverDays after the first.
type BounceRule struct {
	After      int  `json:"after,omitempty"`
	WithinDays int  `json:"within_days,omitempty"` // 30
	OverDays   int  `json:"over_days,omitempty"`   // 0: no minimum
	ForDays    int  `json:"for_days,omitempty"`    // 0: for ever
	Never      bool `json:"never,omitempty"`       // never suppress
}

// Limits of bounce rules. MaxBounceDays is also how long bounces are stored.
const (
	MaxBounceDays  = 180
	MaxBounces     = 100
	MaxGivenUpDays = 3650
	BounceWithin   = 30
)

// DefaultBounces are the rules of a service without its own. They follow the practice of large
// senders: an unknown mailbox is suppressed at once; a full mailbox or an unreachable server has
// weeks.
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

// Reached reports whether bounces at these times reach the limit of the rule.
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

// Until returns the end of a suppression that begins now; zero: for ever.
func (b *BounceRule) Until(now time.Time) time.Time {
	if b.ForDays == 0 {
		return time.Time{}
	}
	return now.AddDate(0, 0, b.ForDays)
}

// Limits of the matching budget: the maximum matching cost of an event for all unindexed
// conditions of its topic.
const (
	defaultBudget = time.Millisecond
	MaxBudget     = 100 * time.Millisecond
)

// Budget returns the matching budget of the service.
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

	MatchingBudget time.Duration // maximum matching cost of an event for unindexed conditions

	Approval
	ServiceLimits

	SendApproval string // SendApprovalRequired or SendApprovalNone; "": required

	Pages Pages // look and texts of the recipient pages

	MailDomains []MailDomain // for whose addresses its mailboxes receive mail; none: for all addresses of its mailboxes

	Roles []RoleGrant // of people who sign in with OpenID Connect

	Notify NotifySettings // for clients of GOV.UK Notify

	SubscriberSchema json.RawMessage // of the attributes of its subscribers, or nil
}

// ServiceBody is the stored form of a service.
type ServiceBody struct {
	Title  string   `json:"title,omitempty"`
	Budget Duration `json:"matching_budget,omitempty"` // 0: the default
	Approval
	ServiceLimits
	SendApproval string       `json:"send_approval,omitempty"`
	Pages        Pages        `json:"pages,omitzero"`
	MailDomains  []MailDomain `json:"mail_domains,omitempty"`
	Roles        []RoleGrant  `json:"roles,omitempty"`

	Notify NotifySettings `json:"notify,omitzero"`
}

// The values of the setting send_approval.
const (
	SendApprovalRequired = "required" // a second person approves each send
	SendApprovalNone     = "none"
)

// A MailDomain is a domain for whose addresses the mailboxes of a service receive mail. It belongs to one service.
type MailDomain struct {
	Domain   string `json:"domain"`              // in lower case and in ASCII
	CatchAll string `json:"catch_all,omitempty"` // address of the mailbox that receives the mail to addresses that nobody has
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
	svc.Pages, svc.MailDomains, svc.Roles, svc.SendApproval = body.Pages, body.MailDomains, body.Roles, body.SendApproval
	svc.Notify = body.Notify
	s.Services[c.Name] = svc
	return nil
}

// Pages has the look and texts of the recipient pages of a service and of their mails.
type Pages struct {
	Color     string                       `json:"color,omitempty"`     // #rrggbb; text on it is black or white, whichever has more contrast
	Logo      string                       `json:"logo,omitempty"`      // data:image/png;base64,...
	Links     []PageLink                   `json:"links,omitempty"`     // in the footer
	Texts     map[string]map[string]string `json:"texts,omitempty"`     // by language tag, by name
	Templates map[string]string            `json:"templates,omitempty"` // by purpose of the mail
	Goodbye   bool                         `json:"goodbye,omitempty"`   // a mail confirms the end of subscriptions
}

// A PageLink is a link on a recipient page.
type PageLink struct {
	Title string `json:"title"`
	URL   string `json:"url"`
}

// PageMails lists the purposes for which a service may have its own mail templates.
var PageMails = []string{"confirm", "known", "moved", "goodbye", "link", "programs"}

// ServiceLimits are the limits over all channels of a service, and its bounce rules. The zero
// value has no limits and the default bounce rules.
type ServiceLimits struct {
	Rate       Rate           `json:"rate,omitzero"`
	DailyQuota DailyQuota     `json:"daily_quota,omitzero"`
	Bounces    BounceSettings `json:"bounces,omitzero"`
}

// A ServiceSnapshot has the members of a service that are not deleted.
type ServiceSnapshot struct {
	Number         uint32
	Name           string
	Title          string
	MatchingBudget time.Duration // 0: the default
	Approval       Approval
	Limits         ServiceLimits
	SendApproval   string // "": required
	Pages          Pages
	MailDomains    []MailDomain
	Roles          []RoleGrant
	Notify         NotifySettings
	Topics         map[string]*Topic
	Channels       map[string]*Channel
	Templates      map[string]*TemplateSource // the published versions
	Workers        map[string]*Worker
}

func NewService(number uint32, name string) *ServiceSnapshot {
	return &ServiceSnapshot{Number: number, Name: name,
		Topics: map[string]*Topic{}, Channels: map[string]*Channel{}, Templates: map[string]*TemplateSource{}, Workers: map[string]*Worker{}}
}

// A SubscriberSchema is the schema of the attributes of subscribers. It applies when attributes
// are put; stored attributes are not checked again.
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

// CheckAttributes validates attributes. Missing attributes are an empty object.
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

// loadSubscriberSchema loads a stored schema into s.
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
