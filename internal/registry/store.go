package registry

import (
	"context"

	"fanfare.dev/fanfare"
)

// Store is what the registry needs of a database. One goroutine writes (Load,
// then Commit); any number read at the same time.
type Store interface {
	// Load visits everything that is kept: first the change sequence and the
	// configuration, then the filters, then subscribers and subscriptions, each
	// of these two in ascending order of place and from a goroutine of its own.
	// It is called once, before any Commit.
	Load(ctx context.Context, v Loader) error

	// Commit keeps all of b in one transaction, durably, or nothing of it. An
	// error that a user can meet wraps a *fanfare.Error (DiskFull when there is no
	// room, else Unavailable) and the cause. The store is usable after an error.
	Commit(b *Batch) error

	// SubscriberRecords and SubscriptionRecords visit the rows at places, which
	// are sorted ascending, in that order; missing ones are skipped. The
	// strings of a record may be kept, its bytes only until visit returns.
	SubscriberRecords(ctx context.Context, places []fanfare.RowID, visit func(*SubscriberRecord) error) error
	SubscriptionRecords(ctx context.Context, places []fanfare.RowID, visit func(*SubscriptionRecord) error) error

	// ScanSubscribers and ScanSubscriptions visit the rows of a range in
	// ascending order until visit returns an error, which they return.
	ScanSubscribers(ctx context.Context, of Range, visit func(*SubscriberRecord) error) error
	ScanSubscriptions(ctx context.Context, of Range, visit func(*SubscriptionRecord) error) error
	// AuditRecords visits the audit from id to down to id from, the latest first,
	// until visit returns false; AuditBounds is its lowest and highest id, or 0.
	AuditRecords(ctx context.Context, from, to int64, visit func(*AuditRecord) bool) error
	AuditBounds(ctx context.Context) (oldest, latest int64, err error)

	// SuppressionRecords reads what is kept of some suppressed addresses, of which
	// service, kind and hash are known. What is not there stays as it is.
	SuppressionRecords(ctx context.Context, of []SuppressionRecord) error

	// File returns the bytes of a file that a template has, nil where it is not kept.
	File(ctx context.Context, sum fanfare.Sum) ([]byte, error)

	// ConsentRecords visits what is kept of the subscriptions at places, of each the
	// oldest first. Nothing of a record may be kept.
	ConsentRecords(ctx context.Context, places []fanfare.RowID, visit func(*ConsentRecord) error) error

	// Scrub makes sure that names, in lower case, are nowhere in the database but
	// in rows that are kept. It may run beside Commit.
	Scrub(names [][]byte) error
}

// A Range is a run of places.
type Range struct {
	First, Last fanfare.RowID // both inclusive
}

// A Loader takes what Load visits. Nothing of a record may be kept, not even
// its strings.
type Loader struct {
	ChangeSeq    func(uint64)
	Config       func(*ConfigRecord) error
	Suppression  func(*SuppressionRecord)
	Erasure      func(*ErasureRecord) error
	Filter       func(*FilterRecord) error
	Subscriber   func(*SubscriberRecord) error
	Subscription func(*SubscriptionRecord) error
}

// A Batch is what one commit keeps. New rows are grouped by partition and
// ascending in it.
type Batch struct {
	ChangeSeq     uint64 // the new one; 0 if no subscription changes
	At            int64  // Unix nanoseconds
	Config        []ConfigRecord
	Files         []FileRecord // those that are kept already stay as they are
	Audit         []AuditRecord
	AuditBefore   int64 // if not 0, some thousand lines of the audit with lower ids go
	Filters       []FilterRecord
	Subscribers   [fanfare.Partitions][]SubscriberRecord
	Subscriptions [fanfare.Partitions][]SubscriptionRecord

	// Updates of rows that were kept before: all but place and service; and all
	// but place, subscriber, topic and creation. What an insert does not write
	// of a new row (Subscriber, Parts and Flags) is an update, too.
	SubscriberUpdates   []*SubscriberRecord
	SubscriptionUpdates []*SubscriptionRecord

	Consents     []ConsentRecord // new ones
	ConsentsGone []fanfare.RowID // subscriptions of which none is to be left

	News []News // that services are to be told of

	Suppressions []SuppressionRecord
	Erasures     []ErasureRecord
	EmptyFilters []uint32         // numbers of filters whose text goes
	AuditNames   map[int64]string // by id of a line of the audit: the name that it gets
	Securely     bool             // overwrite what goes
}

// A ConfigRecord is one named thing of the configuration: small, read as a
// whole at start.
type ConfigRecord struct {
	Kind    string // service, channel, topic, template, key, switch and so on: see kinds.go
	Number  uint32 // within the kind, for good, from 1
	Service uint32 // number of the service; 0 if it belongs to none
	Name    string
	Body    []byte // JSON object
	Deleted bool   // its number stays taken
}

// A FileRecord is a file that goes with mails of templates.
type FileRecord struct {
	Sum     fanfare.Sum
	Content []byte
}

// A SuppressionRecord is an address that is not to be written to.
type SuppressionRecord struct {
	Service uint32 // 0: all services
	Kind    uint8
	Hash    SuppressionHash
	Reason  string
	At      int64  // Unix nanoseconds
	Until   int64  // the same; 0: for good
	Source  string // Load leaves it out
	Address string // Load leaves it out; "": kept as a hash alone
	Tag     uint64 // 0: not known
	Lifted  bool
}

// A ConsentRecord is what somebody agreed to with a subscription.
type ConsentRecord struct {
	Subscription fanfare.RowID
	At           int64  // Unix nanoseconds
	Body         []byte // JSON of a Consent
}

// An ErasureRecord is an erasure that was begun; without a body it is over.
type ErasureRecord struct {
	Place fanfare.RowID // of the subscriber
	Body  []byte        // JSON
}

// A FilterRecord is one distinct filter text.
type FilterRecord struct {
	Number uint32 // from 1
	Text   string
}

// A SubscriberRecord is a subscriber as kept.
type SubscriberRecord struct {
	Place      fanfare.RowID
	Service    uint32
	Kind       uint8  // of the address
	ID         string // chosen by the client, or ""
	Address    string
	Locale     string
	TimeZone   string
	Attributes []byte // JSON object, or empty

	// A row is a subscriber and its first address. Further addresses have rows of
	// their own, which name the first row here and use nothing but their address.
	Subscriber fanfare.RowID // 0: this row is the subscriber
	Parts      []byte        // JSON: all rows of the subscriber, in order; empty: this one alone
	Flags      Flags
}

// A SubscriptionRecord is a subscription as kept.
type SubscriptionRecord struct {
	Place      fanfare.RowID
	Subscriber fanfare.RowID
	Topic      uint32
	Channel    uint16
	ID         string // chosen by the client, or ""
	Filter     uint32 // 0: none
	Rule       uint32 // 0: none
	Params     []byte // canonical JSON object, or empty
	Data       []byte // JSON object, or empty
	Ended      bool
	CreatedAt  int64 // Unix nanoseconds
	CreatedSeq uint64
	EndedAt    int64
	EndedSeq   uint64
	Reason     string

	// The last pause. One that is paused has no ResumedSeq.
	Paused     bool
	PausedAt   int64
	PausedSeq  uint64
	ResumedSeq uint64

	Slot uint16 // number of a cadence in a time zone; 0: at once
	Was  []byte // JSON: the slots before, of which what waits has not been carried over; an insert does not write it
}

// active reports whether events are matched against it.
func (s *SubscriptionRecord) active() bool { return !s.Ended && !s.Paused }
