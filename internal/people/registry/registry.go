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

// Options are the parts and settings of a registry.
type Options struct {
	Store      Store      // owned by the registry
	Conditions Conditions // the match index, empty

	// ParseAddress checks a mail address and returns its normal form, which is the same for all
	// spellings of a mailbox.
	ParseAddress func(string) (string, error)

	// ParseURL does the same for the URL of a webhook receiver.
	ParseURL func(string) (string, error)
	// ParsePhone does the same for a telephone number.
	ParsePhone func(string) (string, error)

	// CompileTemplate checks the syntax of a template. The pointers of its
	// errors begin with /templates/NAME.
	CompileTemplate func(*catalog.TemplateSource) error

	// DryRunTemplate checks a template against the schema of a topic that uses it (true: any
	// field) and the params of a rule (nil: none). Without a schema, only direct messages use the
	// template. The pointers of its errors begin with /templates/NAME.
	DryRunTemplate func(src *catalog.TemplateSource, schema json.RawMessage, params map[string]string) error

	// DryRunDigest checks a template against the schemas of all topics whose digests it formats.
	// One digest may contain events of several topics.
	DryRunDigest func(src *catalog.TemplateSource, schemas []json.RawMessage) error

	// CheckKey returns the error of a DKIM key of a channel. Nil: no check.
	CheckKey func(*catalog.Channel, *catalog.DKIMKey) error

	// Files is the policy for attachments of templates.
	Files filetype.Policy

	// Issuers are the URLs of the issuers of OpenID Connect with which people can sign in.
	Issuers []string

	// WaitInFlight is called for an ended subscription once the end is durable and removed from
	// the index. It returns when no message for it is in flight. Nil: no wait.
	WaitInFlight func(fanfare.RowID)

	// SuppressionKey is the key of the hashes of suppressed addresses.
	SuppressionKey []byte

	// Vault seals the secrets of keys that verify signatures. Nil: there can be no such keys.
	Vault state.Vault

	// StoreOutage returns the error of an outage of the store, during which changes are rejected
	// immediately. MaxWait limits how long a call waits for the store; 0: no limit.
	StoreOutage func() error // nil: never an outage
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
	minRows            rowMinimums // as stored at start
	invalidConditions  int         // subscriptions whose conditions were not valid at start
	newNotices         chan struct{}

	suppressions suppression.List
	erasures     erasures
	writer       *writer

	closing sync.RWMutex // held for reading while a job is enqueued
	closed  bool
}

// Open loads the store and fills the match index.
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
	r.Catalog = state.New(state.Options{Store: opt.Store, Conditions: opt.Conditions, Logger: opt.Logger, Vault: opt.Vault, Apply: apply.Options{
		CheckConditions: opt.Conditions.Check, CompileTemplate: opt.CompileTemplate, DryRunTemplate: opt.DryRunTemplate,
		DryRunDigest: opt.DryRunDigest, CheckKey: opt.CheckKey, Files: opt.Files, Issuers: opt.Issuers, File: opt.Store.File, Now: opt.Now}}, r.writer)
	if err := r.load(ctx); err != nil {
		return nil, err
	}
	r.writer.start()
	return r, nil
}

// Close completes the enqueued jobs. A second call does nothing.
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

// ChangeSeq returns the number of the last change of subscriptions in the match index.
func (r *Registry) ChangeSeq() uint64 { return r.changeSeq.Load() }

// Live reports whether the subscription is active. It is false from the moment in which an end is
// durable.
func (r *Registry) Live(place fanfare.RowID) bool { return r.live.Has(place) }

// Store is the control store. One goroutine writes (Load, then Commit); any number may read at the
// same time.
type Store interface {
	// Load visits all data: first the change sequence and the configuration, then the filters,
	// then subscribers and subscriptions, each by row id and in a goroutine of its own. It is
	// called once, before any Commit.
	Load(ctx context.Context, v control.Loader) error

	// Commit stores all of b in one transaction, durably, or nothing. An error wraps a
	// *fanfare.Error (DiskFull if the disk is full, else Unavailable) and the cause. The store
	// stays usable after an error.
	Commit(b *control.Batch) error

	// SubscriberRecords and SubscriptionRecords visit the rows at places, which are sorted, in
	// that order. Missing rows are skipped. The strings of a record may be kept; its bytes are
	// valid until visit returns.
	SubscriberRecords(ctx context.Context, places []fanfare.RowID, visit func(*control.SubscriberRecord) error) error
	SubscriptionRecords(ctx context.Context, places []fanfare.RowID, visit func(*control.SubscriptionRecord) error) error

	// ScanSubscribers and ScanSubscriptions visit the rows of a range by row id until visit
	// returns an error, which they return.
	ScanSubscribers(ctx context.Context, of control.Range, visit func(*control.SubscriberRecord) error) error
	ScanSubscriptions(ctx context.Context, of control.Range, visit func(*control.SubscriptionRecord) error) error
	// AuditEntries visits the audit entries from id to down to id from, until visit returns false.
	// AuditBounds returns the lowest and highest id, or 0.
	AuditEntries(ctx context.Context, from, to int64, visit func(*audit.Entry) bool) error
	AuditBounds(ctx context.Context) (oldest, latest int64, err error)

	// SuppressionRecords completes records of which service, kind and hash are set. Records that
	// are not stored do not change.
	SuppressionRecords(ctx context.Context, of []suppression.Record) error

	// File returns the content of a template's file, or nil.
	File(ctx context.Context, sum fanfare.Sum) ([]byte, error)

	// ConsentRecords visits the consents of subscriptions, the oldest first for each. Records are
	// valid until visit returns.
	ConsentRecords(ctx context.Context, places []fanfare.RowID, visit func(*control.ConsentRecord) error) error

	// Scrub makes sure that names, in lower case, occur in the database only in current rows. It
	// may run during Commit.
	Scrub(names [][]byte) error
}

// Conditions is the match index. One goroutine changes it; any number may check conditions.
// Package condition documents the methods.
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
