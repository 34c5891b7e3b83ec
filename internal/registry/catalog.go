package registry

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/catalog"
	"fanfare.dev/fanfare/internal/catalog/apply"
	"fanfare.dev/fanfare/internal/catalog/audit"
	"fanfare.dev/fanfare/internal/condition"
	"fanfare.dev/fanfare/internal/store/control"
)

// A Catalog has the configuration that is in force: services with their topics, templates and
// channels, keys, pauses, rates and quotas. Reads take no lock or a short one. Changes are made by
// the Writer and are durable when a method returns. It is safe for concurrent use.
type Catalog struct {
	opt      catalogOptions
	config   atomic.Pointer[catalog.Snapshot]
	keyring  keyring
	switches switches
	rates    rates
	quotas   quotas
	heard    atomic.Pointer[heard]
	writer   catalogWriter
}

// catalogOptions are the parts of a Catalog.
type catalogOptions struct {
	Store      catalogStore
	Conditions topicIndex
	Apply      apply.Options
	Logger     *slog.Logger
}

// A catalogStore reads from the control store.
type catalogStore interface {
	File(ctx context.Context, sum fanfare.Sum) ([]byte, error)
	AuditEntries(ctx context.Context, from, to int64, visit func(*audit.Entry) bool) error
	AuditBounds(ctx context.Context) (oldest, latest int64, err error)
}

// A topicIndex is the match index as far as topics are concerned.
type topicIndex interface {
	Define(key condition.Key, def condition.Definition) error
	CheckDefine(key condition.Key, def condition.Definition) error
	Len(key condition.Key) int
}

// A catalogWriter makes one change after the other.
type catalogWriter interface {
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

// newCatalog returns an empty Catalog. Load and SetSnapshot fill it.
func newCatalog(opt catalogOptions, w catalogWriter) *Catalog { return &Catalog{opt: opt, writer: w} }

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
	r.opt.Logger.Error("registry: reading the store", "error", err)
	return control.UserError(err, "the control store could not be read")
}
