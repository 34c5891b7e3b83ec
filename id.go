package fanfare

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Ids that Fanfare makes contain the location of the object, so that no index is needed to find
// it:
//
//	evt-20261120-1001          event: day of receipt (UTC), sequence in hex
//	msg-20261120-1001          message: the same event, if it is a direct send
//	dlv-20261120-40041-17      delivery: day, manifest and position in hex
//	sub-1c00004e               subscription: its row id in hex
//
// Clients must not choose ids with one of these prefixes.
const (
	eventPrefix        = "evt-"
	messagePrefix      = "msg-"
	deliveryPrefix     = "dlv-"
	subscriptionPrefix = "sub-"
)

// ReservedID reports whether id has a prefix of the ids that Fanfare makes, so that a client may
// not choose it.
func ReservedID(id string) bool {
	return strings.HasPrefix(id, eventPrefix) || strings.HasPrefix(id, messagePrefix) ||
		strings.HasPrefix(id, deliveryPrefix) || strings.HasPrefix(id, subscriptionPrefix)
}

// Day is a UTC calendar day, counted from 1970-01-01. The data of an event is stored with the day
// on which the event was received.
type Day int32

// DayOf returns the UTC day of t.
func DayOf(t time.Time) Day { return Day(t.Unix() / 86400) }

// String returns the day as 20060102.
func (d Day) String() string { return d.Time().Format("20060102") }

// Time returns the start of the day.
func (d Day) Time() time.Time { return time.Unix(int64(d)*86400, 0).UTC() }

// ParseDay reads the output of Day.String.
func ParseDay(s string) (Day, error) {
	t, err := time.Parse("20060102", s)
	if err != nil {
		return 0, err
	}
	return DayOf(t), nil
}

// indexBits is the number of bits of an EventSeq that number the event within its intake group.
// MaxGroup is the maximum number of events in a group.
const (
	indexBits = 12
	MaxGroup  = 1 << indexBits
)

// An EventSeq orders events: the sequence of the intake group in the EVENTS
// stream, and the event's index inside that group in the lower 12 bits.
type EventSeq uint64

// NewEventSeq joins a stream sequence and an index inside the group.
func NewEventSeq(stream uint64, index int) EventSeq {
	return EventSeq(stream<<indexBits | uint64(index))
}

// Stream returns the sequence of the group in the EVENTS stream.
func (s EventSeq) Stream() uint64 { return uint64(s) >> indexBits }

// Index returns the event's index inside its group.
func (s EventSeq) Index() int { return int(s & (MaxGroup - 1)) }

// An EventRef identifies an event permanently: its day and its sequence.
type EventRef struct {
	Day Day
	Seq EventSeq
}

// String returns the public id.
func (r EventRef) String() string {
	return fmt.Sprintf("%s%s-%x", eventPrefix, r.Day, uint64(r.Seq))
}

// MessageID returns the public id of an event that is a direct send.
func (r EventRef) MessageID() string {
	return fmt.Sprintf("%s%s-%x", messagePrefix, r.Day, uint64(r.Seq))
}

// ParseEventRef reads the public id of an event or of a message, which identifies its event.
func ParseEventRef(id string) (EventRef, bool) {
	day, hex, ok := cutRef(id, eventPrefix)
	if !ok {
		day, hex, ok = cutRef(id, messagePrefix)
	}
	if !ok {
		return EventRef{}, false
	}
	seq, err := strconv.ParseUint(hex, 16, 64)
	return EventRef{day, EventSeq(seq)}, err == nil
}

func cutRef(id, prefix string) (Day, string, bool) {
	rest, ok := strings.CutPrefix(id, prefix)
	if !ok {
		return 0, "", false
	}
	dayText, rest, ok := strings.Cut(rest, "-")
	day, err := ParseDay(dayText)
	return day, rest, ok && err == nil
}

// A ManifestID is unique in its day: the event's sequence, and the first
// partition that the manifest covers in the lower six bits.
type ManifestID uint64

// NewManifestID joins an event and the first partition covered.
func NewManifestID(seq EventSeq, partition int) ManifestID {
	return ManifestID(uint64(seq)*Partitions + uint64(partition))
}

// Event returns the event that the manifest belongs to.
func (m ManifestID) Event() EventSeq { return EventSeq(m / Partitions) }

// Partition returns the first partition that the manifest covers.
func (m ManifestID) Partition() int { return int(m % Partitions) }

// A DeliveryRef identifies a delivery permanently, by its position in its manifest. All attempts
// of a delivery share it, and the Message-ID of a mail is derived from it.
type DeliveryRef struct {
	Day      Day
	Manifest ManifestID
	Position uint32
}

// String returns the public id.
func (r DeliveryRef) String() string {
	return string(r.Append(nil))
}

// Append appends the public id to dst.
func (r DeliveryRef) Append(dst []byte) []byte {
	dst = append(dst, deliveryPrefix...)
	dst = r.Day.Time().AppendFormat(dst, "20060102")
	dst = append(dst, '-')
	dst = strconv.AppendUint(dst, uint64(r.Manifest), 16)
	dst = append(dst, '-')
	return strconv.AppendUint(dst, uint64(r.Position), 16)
}

// ParseDeliveryRef reads a public delivery id.
func ParseDeliveryRef(id string) (DeliveryRef, bool) {
	day, rest, ok := cutRef(id, deliveryPrefix)
	if !ok {
		return DeliveryRef{}, false
	}
	first, second, ok := strings.Cut(rest, "-")
	manifest, err1 := strconv.ParseUint(first, 16, 64)
	position, err2 := strconv.ParseUint(second, 16, 32)
	return DeliveryRef{day, ManifestID(manifest), uint32(position)}, ok && err1 == nil && err2 == nil
}

// SubscriptionID returns the public id of a subscription for which the client chose no id.
func SubscriptionID(p RowID) string {
	return subscriptionPrefix + strconv.FormatUint(uint64(p), 16)
}

// ParseSubscriptionID reads the output of SubscriptionID.
func ParseSubscriptionID(id string) (RowID, bool) {
	hex, ok := strings.CutPrefix(id, subscriptionPrefix)
	if !ok {
		return 0, false
	}
	p, err := strconv.ParseUint(hex, 16, 32)
	return RowID(p), err == nil
}
