package registry

import (
	"context"
	"encoding/json"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/catalog"
	"fanfare.dev/fanfare/internal/catalog/apply"
	"fanfare.dev/fanfare/internal/catalog/audit"
	"fanfare.dev/fanfare/internal/catalog/state"
	"fanfare.dev/fanfare/internal/condition"
	"fanfare.dev/fanfare/internal/filetype"
	"fanfare.dev/fanfare/internal/people"
	"fanfare.dev/fanfare/internal/people/filtertext"
	"fanfare.dev/fanfare/internal/people/placeindex"
	"fanfare.dev/fanfare/internal/people/suppression"
	"fanfare.dev/fanfare/internal/progress"
	"fanfare.dev/fanfare/internal/store/control"
)

// Options are the parts that a registry works with.
type Options struct {
	Store      Store      // the registry's from now on: Close closes it
	Conditions Conditions // the match index, empty

	// ParseAddress checks a mail address and returns its normal form: two
	// spellings of one mailbox have the same.
	ParseAddress func(string) (string, error)

	// ParseURL does the same with the URL of a receiver of webhooks.
	ParseURL func(string) (string, error)

	// CompileTemplate checks the syntax of a template. The pointers of its
	// errors begin with /templates/NAME.
	CompileTemplate func(*catalog.TemplateSource) error

	// DryRunTemplate checks a template against a topic that uses it: its schema
	// (true: any field), and the params of the rule (nil: none); or, without a
	// schema, as one that only direct sends can use. The pointers of its errors
	// begin with /templates/NAME.
	DryRunTemplate func(src *catalog.TemplateSource, schema json.RawMessage, params map[string]string) error

	// DryRunDigest checks a template against the schemas of all topics whose
	// digests it writes: a message may tell of events of each of them.
	DryRunDigest func(src *catalog.TemplateSource, schemas []json.RawMessage) error

	// CheckKey says what is wrong with a key that a channel is to sign mail with. Nil:
	// nothing.
	CheckKey func(*catalog.Channel, *catalog.DKIMKey) error

	// Files says which files may go with mails of templates.
	Files filetype.Policy

	// AfterEnd is called for an ended subscription once the end is durable and
	// out of the index. It returns when no letter for it is on the wire. Nil
	// is nothing to wait for.
	WaitInFlight func(fanfare.RowID)

	// SuppressionKey is what addresses of the suppression list are hashed with.
	SuppressionKey []byte

	// Away says why nothing can be kept at this moment, nil while it can: changes
	// are refused at once then. Patience is how long a call waits for its outcome
	// where the store does not answer; 0 is for as long as it takes.
	StoreOutage func() error // nil: never
	MaxWait     time.Duration

	Progress *progress.Phase // counts the subscriptions that Open loads; nil: nothing is counted

	Now    func() time.Time // nil: time.Now
	Logger *slog.Logger     // nil: slog.Default
}

// A Registry is safe for concurrent use.
type Registry struct {
	*state.Catalog

	opt                Options
	hash               people.Hasher
	filters            *filtertext.Dictionary
	addresses          placeindex.HashIndex // address -> subscriber
	foldedAddresses    placeindex.HashIndex // folded address -> subscriber, where the address itself is spelled otherwise
	subscribers        placeindex.HashIndex // client's id -> subscriber
	identities         placeindex.HashIndex // client's id or natural key -> subscription
	subscriptionsOfRow placeindex.BySubscriber
	live               *placeindex.ActiveSet
	changeSeq          atomic.Uint64
	fieldCache         people.FieldCache
	slots              slots
	quarantine         quarantine
	minRows            rowMinimums // as it was at the start
	invalidConditions  int         // subscriptions whose conditions were not understood at the start
	newNotices         chan struct{}

	suppressions suppression.List
	erasures     erasures
	writer       *writer

	closing sync.RWMutex // held for reading while a job is handed in
	closed  bool
}

// Open loads everything that the store has and fills the match index.
func Open(ctx context.Context, opt Options) (*Registry, error) {
	return open(ctx, opt, people.NewHasher())
}

func open(ctx context.Context, opt Options, h people.Hasher) (*Registry, error) {
	if opt.Now == nil {
		opt.Now = time.Now
	}
	if opt.Logger == nil {
		opt.Logger = slog.Default()
	}
	if opt.StoreOutage == nil {
		opt.StoreOutage = func() error { return nil }
	}
	r := &Registry{opt: opt, hash: h, filters: filtertext.New(), live: new(placeindex.ActiveSet), newNotices: make(chan struct{}, 1)}
	r.suppressions.Key, r.suppressions.TagKey = opt.SuppressionKey, suppression.TagKeyOf(opt.SuppressionKey)
	r.writer = newWriter(r)
	r.Catalog = state.New(state.Options{Store: opt.Store, Conditions: opt.Conditions, Logger: opt.Logger, Apply: apply.Options{
		CheckConditions: opt.Conditions.Check, CompileTemplate: opt.CompileTemplate, DryRunTemplate: opt.DryRunTemplate,
		DryRunDigest: opt.DryRunDigest, CheckKey: opt.CheckKey, Files: opt.Files, File: opt.Store.File, Now: opt.Now}}, r.writer)
	if err := r.load(ctx); err != nil {
		return nil, err
	}
	r.writer.start()
	return r, nil
}

// Close does what was handed in. A second call does nothing.
func (r *Registry) Close() {
	r.closing.Lock()
	if r.closed {
		r.closing.Unlock()
		return
	}
	r.closed = true
	close(r.writer.jobs)
	r.closing.Unlock()
	r.writer.goroutines.Wait()
}

// ChangeSeq returns the number of the last change of subscriptions that the
// match index has.
func (r *Registry) ChangeSeq() uint64 { return r.changeSeq.Load() }

// Live reports whether the subscription is active. It is false from the moment
// in which an end is durable.
func (r *Registry) Live(place fanfare.RowID) bool { return r.live.Has(place) }

// Store is what the registry needs of a database. One goroutine writes (Load,
// then Commit); any number read at the same time.
type Store interface {
	// Load visits everything that is kept: first the change sequence and the
	// configuration, then the filters, then subscribers and subscriptions, each
	// of these two in ascending order of place and from a goroutine of its own.
	// It is called once, before any Commit.
	Load(ctx context.Context, v control.Loader) error

	// Commit keeps all of b in one transaction, durably, or nothing of it. An
	// error that a user can meet wraps a *fanfare.Error (DiskFull when there is no
	// room, else Unavailable) and the cause. The store is usable after an error.
	Commit(b *control.Batch) error

	// SubscriberRecords and SubscriptionRecords visit the rows at places, which
	// are sorted ascending, in that order; missing ones are skipped. The
	// strings of a record may be kept, its bytes only until visit returns.
	SubscriberRecords(ctx context.Context, places []fanfare.RowID, visit func(*control.SubscriberRecord) error) error
	SubscriptionRecords(ctx context.Context, places []fanfare.RowID, visit func(*control.SubscriptionRecord) error) error

	// ScanSubscribers and ScanSubscriptions visit the rows of a range in
	// ascending order until visit returns an error, which they return.
	ScanSubscribers(ctx context.Context, of control.Range, visit func(*control.SubscriberRecord) error) error
	ScanSubscriptions(ctx context.Context, of control.Range, visit func(*control.SubscriptionRecord) error) error
	// AuditRecords visits the audit from id to down to id from, the latest first,
	// until visit returns false; AuditBounds is its lowest and highest id, or 0.
	AuditEntries(ctx context.Context, from, to int64, visit func(*audit.Entry) bool) error
	AuditBounds(ctx context.Context) (oldest, latest int64, err error)

	// SuppressionRecords reads what is kept of some suppressed addresses, of which
	// service, kind and hash are known. What is not there stays as it is.
	SuppressionRecords(ctx context.Context, of []suppression.Record) error

	// File returns the bytes of a file that a template has, nil where it is not kept.
	File(ctx context.Context, sum fanfare.Sum) ([]byte, error)

	// ConsentRecords visits what is kept of the subscriptions at places, of each the
	// oldest first. Nothing of a record may be kept.
	ConsentRecords(ctx context.Context, places []fanfare.RowID, visit func(*control.ConsentRecord) error) error

	// Scrub makes sure that names, in lower case, are nowhere in the database but
	// in rows that are kept. It may run beside Commit.
	Scrub(names [][]byte) error
}

// Conditions is the match index as the registry fills it. One goroutine changes
// it, any number check against it. Package match says what each method promises.
type Conditions interface {
	Check(def condition.Definition) error
	Define(key condition.Key, def condition.Definition) error
	CheckDefine(key condition.Key, def condition.Definition) error
	FilterCost(key condition.Key, filter string) (fanfare.Cost, error)
	ParamsCost(key condition.Key, rule string, params json.RawMessage) (fanfare.Cost, error)
	UnindexedCost(key condition.Key) (nanos int64)
	HasFilter(key condition.Key, filter string) bool
	Add(key condition.Key, entries []condition.Entry) error
	Remove(key condition.Key, place fanfare.RowID)
	Len(key condition.Key) int
}
