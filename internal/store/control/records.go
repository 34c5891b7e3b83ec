package control

import (
	"crypto/sha256"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/catalog/audit"
)

// AddAudit adds an entry about an operation if the change has an actor.
func (b *Batch) AddAudit(a *audit.Actor, d audit.Operation, detail *audit.Detail) {
	if a != nil {
		b.Audit = append(b.Audit, audit.NewEntry(a, d, detail))
	}
}

// A BounceRecord is a message that came back of an address, as far as it counts for
// giving the address up.
type BounceRecord struct {
	Service  uint32
	Kind     uint8
	Hash     SuppressionHash
	Delivery fanfare.DeliveryRef
	Why      BounceKind
	At       int64 // Unix nanoseconds
}

// BounceKind is the rule that a bounce counts for. The numbers are stored.
type BounceKind uint8

// The kinds, in the order of BounceSettings.
const (
	UnknownBounce BounceKind = iota + 1
	HardBounces
	SoftBounce
	FullBounce
	ComplaintBounce
)

// A Range is a run of places.
type Range struct {
	First, Last fanfare.Place // both inclusive
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
	Audit         []audit.Entry
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
	ConsentsGone []fanfare.Place // subscriptions of which none is to be left

	Notices []Notice // that services are to be told of

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
	Subscription fanfare.Place
	At           int64  // Unix nanoseconds
	Body         []byte // JSON of a Consent
}

// An ErasureRecord is an erasure that was begun; without a body it is over.
type ErasureRecord struct {
	Place fanfare.Place // of the subscriber
	Body  []byte        // JSON
}

// A FilterRecord is one distinct filter text.
type FilterRecord struct {
	Number uint32 // from 1
	Text   string
}

// A SuppressionHash is the HMAC-SHA-256 of the normal form of an address.
type SuppressionHash [sha256.Size]byte
