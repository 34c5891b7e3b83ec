package control

import (
	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/catalog/audit"
	"fanfare.dev/fanfare/internal/people/suppression"
)

// AddAudit adds an entry about an operation if the change has an actor.
func (b *Batch) AddAudit(a *audit.Actor, d audit.Operation, detail *audit.Detail) {
	if a != nil {
		b.Audit = append(b.Audit, audit.NewEntry(a, d, detail))
	}
}

// A BounceRecord is a bounce or a complaint that counts towards the suppression of an address.
type BounceRecord struct {
	Service     uint32
	AddressKind uint8
	Hash        suppression.Hash
	Delivery    fanfare.DeliveryRef
	Kind        BounceKind
	At          int64 // Unix nanoseconds
}

// BounceKind selects the rule to which a bounce counts. The numbers are stored.
type BounceKind uint8

// The kinds of bounces, in the order of catalog.BounceSettings.
const (
	BounceUnknown BounceKind = iota + 1
	BounceHard
	BounceSoft
	BounceMailboxFull
	BounceComplaint
)

// A Range is a range of places.
type Range struct {
	First, Last fanfare.RowID // both inclusive
}

// A Loader has the callbacks of Load. They must not keep any part of a record, not even its strings.
type Loader struct {
	Total        func(subscriptions int64) // an upper bound of the number; may be nil
	ChangeSeq    func(uint64)
	Config       func(*ConfigRecord) error
	Suppression  func(*suppression.Record)
	Erasure      func(*ErasureRecord) error
	Filter       func(*FilterRecord) error
	Subscriber   func(*SubscriberRecord) error
	Subscription func(*SubscriptionRecord) error
}

// A Batch has the changes of one transaction. New rows are grouped by partition, in ascending order
// of place.
type Batch struct {
	ChangeSeq     uint64 // the new one; 0 if no subscription changes
	At            int64  // Unix nanoseconds
	Config        []ConfigRecord
	Files         []FileRecord // files that are stored already do not change
	Audit         []audit.Entry
	AuditBefore   int64 // if not 0: delete some thousand entries with lower ids
	Filters       []FilterRecord
	Subscribers   [fanfare.Partitions][]SubscriberRecord
	Subscriptions [fanfare.Partitions][]SubscriptionRecord

	// Updates of existing rows. An update writes all fields except place and service, and of a
	// subscription except place, subscriber, topic and creation. The fields that an insert does
	// not write (Subscriber, RowsJSON and Flags) need an update, too.
	SubscriberUpdates   []*SubscriberRecord
	SubscriptionUpdates []*SubscriptionRecord

	Consents        []ConsentRecord // new consents
	DeletedConsents []fanfare.RowID // subscriptions whose consents are deleted

	Notices []Notice // about people, for their services

	Suppressions        []suppression.Record
	Erasures            []ErasureRecord
	ErasedFilters       []uint32         // numbers of filters whose text is deleted
	RenamedAuditEntries map[int64]string // new names by id of the entry
	SecureDelete        bool             // overwrite deleted data
}

// A ConfigRecord is one object of the configuration. All of them are loaded at start.
type ConfigRecord struct {
	Kind    string // service, channel, topic, template, key, switch and so on: see package catalog
	Number  uint32 // unique within the kind and never reused, from 1
	Service uint32 // number of the service; 0 if it belongs to none
	Name    string
	Body    []byte // JSON object
	Deleted bool   // the number is not reused
}

// A FileRecord is an attachment or an image of a template.
type FileRecord struct {
	Sum     fanfare.Sum
	Content []byte
}

// A ConsentRecord is the consent to a subscription.
type ConsentRecord struct {
	Subscription fanfare.RowID
	At           int64  // Unix nanoseconds
	Body         []byte // JSON
}

// An ErasureRecord is an erasure that has begun. Without a body it is finished.
type ErasureRecord struct {
	Place fanfare.RowID // of the subscriber
	Body  []byte        // JSON
}

// A FilterRecord is one distinct filter text.
type FilterRecord struct {
	Number uint32 // from 1
	Text   string
}
