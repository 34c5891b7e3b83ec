package registry

import (
	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/inputerror"
)

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

// BounceOf returns the record of an address of a service, without what came back.
func (r *Registry) BounceOf(service, address string) (BounceRecord, error) {
	svc, err := r.config.Load().service(service)
	if err != nil {
		return BounceRecord{}, err
	}
	kind := kindWritten(address)
	normal, err := r.normal(kind, address)
	if err != nil {
		return BounceRecord{}, inputerror.Invalid("", "", "%s", noAddress(address, "", err))
	}
	s := r.suppressionOf(svc.number, kind, normal)
	return BounceRecord{Service: s.Service, Kind: s.Kind, Hash: s.Hash}, nil
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

// Rule is that of a kind.
func (s *BounceSettings) Rule(kind BounceKind) *BounceRule { return s.rules()[kind-1] }
