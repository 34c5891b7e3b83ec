package httpapi

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/netip"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/admin/report"
	"fanfare.dev/fanfare/internal/catalog"
	"fanfare.dev/fanfare/internal/catalog/audit"
	"fanfare.dev/fanfare/internal/catalog/state"
	"fanfare.dev/fanfare/internal/httpapi/limits"
	"fanfare.dev/fanfare/internal/httpapi/recipientpages"
	"fanfare.dev/fanfare/internal/httpapi/wire"
	"fanfare.dev/fanfare/internal/mail/clientconfig"
	"fanfare.dev/fanfare/internal/mail/linktoken"
	"fanfare.dev/fanfare/internal/people"
	"fanfare.dev/fanfare/internal/pipeline/ingest"
)

// Dependencies are the dependencies of the API. All are required except Metrics, Nodes and the parts
// for recipient pages.
type Dependencies struct {
	Keys              Keys
	Keyring           Keyring
	SignIns           SignIns
	OIDC              OIDC // nil: nobody can sign in with OpenID Connect
	Documents         Documents
	Subscriptions     Subscriptions
	Subscribers       Subscribers
	Merging           Merging
	Personal          Personal
	Forgetting        Forgetting
	Suppressions      Suppressions
	AppPasswords      AppPasswords
	Mailboxes         Mailboxes
	MailboxTokens     MailboxTokens
	MailServers       clientconfig.Servers // that mail programs connect to
	SubscriptionLists SubscriptionLists
	Topics            Topics
	Intake            Intake
	Reports           Reports
	Rates             Rates
	Captured          Captured
	Explaining        Explaining
	Conditions        Conditions
	States            States
	Secrets           Secrets
	Previews          Previews
	Switches          Switches
	Recalls           Recalls
	Destinations      Destinations
	Parking           Parking
	Tasks             Tasks
	Settings          []wire.Setting
	Messages          Messages
	Sends             Sends
	Audit             Audit
	Backups           Backups
	Moves             Moves
	Sessions          Sessions
	Agents            Agents
	JMAP              JMAP              // nil: mailboxes are not served over HTTP
	Nodes             func() wire.Nodes // nil: the server is not a node of a cluster

	Receipts Receipts

	Unsubscriber recipientpages.Unsubscriber // these four are nil without a public URL; then there are no pages
	Signups      recipientpages.Signups
	Choices      recipientpages.Choices
	MailPrograms recipientpages.MailPrograms
	Consents     recipientpages.Consents
	Seals        *linktoken.Key // of forms

	Ready       func() error // nil: ready; otherwise the reason why not, while the server starts or drains
	Metrics     http.Handler // nil: no endpoint
	MetricsOpen bool         // serve it without a key to other machines

	PublicURL string // of the server, or ""
	Limits    limits.Limits
	Origins   []string       // origins whose scripts may read responses (CORS)
	Proxies   []netip.Prefix // proxies whose X-Forwarded-For is trusted
	AccessLog string         // LogNone, LogErrors or LogAll

	Version string
	Now     func() time.Time // nil: time.Now
	Log     *slog.Logger     // nil: slog.Default
}

// Keys authenticates API keys.
type Keys interface {
	Authenticate(secret string) (catalog.Principal, bool)
}

// Keyring creates and changes keys. A method with a service sees only the keys of that
// service; "" means all keys.
type Keyring interface {
	Keys(service string) []state.Key
	Key(service, id string) (state.Key, error)
	CreateKey(ctx context.Context, service string, settings state.KeySettings) (key state.Key, secret string, err error)
	ChangeKey(ctx context.Context, service, id string, change func(*state.KeySettings) error) (state.Key, error)
	RotateKey(ctx context.Context, service, id string, grace time.Duration) (key state.Key, secret string, err error)
	DeleteKey(ctx context.Context, service, id string) error
	// CreateNotifyKey creates a key for clients of GOV.UK Notify, or registers the key in text.
	CreateNotifyKey(ctx context.Context, service string, settings state.KeySettings, kind, text string) (key state.Key, secret string, err error)
	// ResealKeys replaces the key with which stored secrets are sealed, and returns their number.
	ResealKeys(ctx context.Context) (int, error)
}

// Subscriptions stores subscriptions. Changes are durable when a method returns.
type Subscriptions interface {
	// PutSubscriptions sets one result per put. An error means that nothing was stored.
	PutSubscriptions(ctx context.Context, service string, puts []people.SubscriptionPut, results []people.PutResult) error
	Import(service string) Import
	Subscription(ctx context.Context, service, id string) (people.Subscription, error)
	// EndSubscriptionIf returns when no message for it can be sent any more.
	EndSubscriptionIf(ctx context.Context, service, id, reason string, check func(is *people.Subscription) error) error
	// PauseSubscription returns when no message for it can be sent any more.
	PauseSubscription(ctx context.Context, service, id string, check func(is *people.Subscription) error) error
	ResumeSubscription(ctx context.Context, service, id string, check func(is *people.Subscription) error) error
	// SubscriberPlaces returns all row ids of a subscriber, or the one of an address.
	SubscriberPlaces(ctx context.Context, service, addressOrID string) ([]fanfare.RowID, error)
}

// An Import stores subscriptions in steps, of which two may run at the same time.
type Import interface {
	// Begin sets the results and sends one error on over, as PutSubscriptions
	// returns it. Steps are processed in order. A step that began before an
	// earlier one failed also fails.
	Begin(ctx context.Context, puts []people.SubscriptionPut, results []people.PutResult) (over <-chan error)
}

// Topics looks up services and their topics.
type Topics interface {
	// CheckAudience rejects an invalid audience filter of a sender.
	CheckAudience(service, filter string) error
	Topic(service, name string) (*catalog.Topic, bool)
	Services() []string
}

// Intake stores events.
type Intake interface {
	// Post returns one result per event when all events without an Err are durable.
	// An error means that nothing was stored. When Post has returned, the caller may
	// reuse the data of the events.
	Post(ctx context.Context, events []fanfare.AcceptedEvent) ([]ingest.Result, error)
}

// Reports reads the status and the history. A service of "" means all services.
type Reports interface {
	Status(ctx context.Context) (wire.Status, error)
	FindEvent(ctx context.Context, service, id string) (fanfare.EventRef, error)
	Broadcast(ctx context.Context, ref fanfare.EventRef) (fanfare.Broadcast, error)
	Broadcasts(ctx context.Context, p report.Pick) (report.Page[fanfare.Broadcast], error)
	Delivery(ctx context.Context, ref fanfare.DeliveryRef) (fanfare.Delivery, error)
	PickDeliveries(ctx context.Context, ref fanfare.EventRef, p *report.DeliveryPick) (report.Page[fanfare.Delivery], error)
	DeliveryOf(ctx context.Context, ref fanfare.EventRef, recipient string) ([]fanfare.Delivery, error)
	WaitingOf(ctx context.Context, ref fanfare.EventRef, recipient string) ([]fanfare.Gathering, error)
	History(ctx context.Context, places []fanfare.RowID, p report.Pick) (report.Page[fanfare.Delivery], error)
}

// Rates reads the values of the minutes from since until before until, in steps.
type Rates interface {
	Rates(ctx context.Context, since, until time.Time, step time.Duration) (wire.Rates, error)
}

// Switches pauses, resumes and cancels the work in a scope. Changes are durable on return.
type Switches interface {
	Pause(ctx context.Context, scope fanfare.Scope, reason string) error
	Resume(ctx context.Context, scope fanfare.Scope, reason string) error
	Cancel(ctx context.Context, scope fanfare.Scope, reason string) error
	// Approve approves a broadcast that waits for approval; by is the approver.
	Approve(ctx context.Context, event, by string) error
	// SetRate sets the rate of a channel or a broadcast, in the notation of documents.
	SetRate(ctx context.Context, scope fanfare.Scope, rate string) error
}

// Parking lists and releases parked work.
type Parking interface {
	Parked(ctx context.Context) ([]fanfare.Parked, error)
	RetryParked(ctx context.Context, id string) error
	DropParked(ctx context.Context, id string) error
}

// Audit reads and writes the audit log. The actor is in the context (audit.WithActor).
type Audit interface {
	Audit(ctx context.Context, q audit.Query) (lines []audit.Entry, next int64, err error)
	Record(ctx context.Context, d audit.Operation, detail *audit.Detail) error
}

// Backups takes backups of the running server, and reports the backup that it was
// restored from.
type Backups interface {
	// Backup writes a backup to w until it is complete or ctx ends, at most bytesPerSecond
	// unless that is 0. It returns Conflict if another backup is running.
	Backup(ctx context.Context, w io.Writer, bytesPerSecond int64) error
	// Restored lists the uncertain broadcasts from an offset on, and returns the offset
	// of the next page, 0 at the end. from is nil if the server was not restored.
	Restored(offset int64, limit int) (from *wire.RestoredFrom, list []wire.Uncertain, next int64, err error)
}
