package registry

import (
	"context"
	"sync"
	"sync/atomic"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/catalog"
	"fanfare.dev/fanfare/internal/catalog/audit"
	"fanfare.dev/fanfare/internal/inputerror"
	"fanfare.dev/fanfare/internal/people/suppression"
	"fanfare.dev/fanfare/internal/store/control"
)

// suppressions are the addresses that are suppressed, by what is kept of them.
// What a list or an export shows beside that stays in the store.
type suppressions struct {
	tagKey  [32]byte
	count   atomic.Int64
	version atomic.Uint64 // rises with each change, once it can be seen

	mu   sync.RWMutex
	all  map[suppressionKey]suppressed
	tags map[uint64]int32 // how many have a tag
}

type suppressionKey struct {
	service uint32
	kind    uint8
	hash    suppression.Hash
}

// suppressed is what has to be known of a suppression at any moment.
type suppressed struct {
	reason    string
	at, until int64 // Unix nanoseconds; until 0: for good
	tag       uint64
}

func keyOf(s *suppression.Record) suppressionKey {
	return suppressionKey{s.Service, s.Kind, s.Hash}
}

// record is what memory has of a suppression.
func (k *suppressionKey) record(s suppressed) suppression.Record {
	return suppression.Record{Service: k.service, Kind: k.kind, Hash: k.hash, Reason: s.reason, At: s.at, Until: s.until, Tag: s.tag}
}

func (s *suppressions) set(records []suppression.Record) {
	if len(records) == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all == nil {
		s.all, s.tags = map[suppressionKey]suppressed{}, map[uint64]int32{}
	}
	for i := range records {
		r := &records[i]
		key := keyOf(r)
		if was, ok := s.all[key]; ok {
			delete(s.all, key)
			if s.tags[was.tag]--; s.tags[was.tag] <= 0 {
				delete(s.tags, was.tag)
			}
		}
		if r.Lifted {
			continue
		}
		s.all[key] = suppressed{reasonKept(r.Reason), r.At, r.Until, r.Tag}
		s.tags[r.Tag]++
	}
	s.count.Store(int64(len(s.all)))
	s.version.Add(1)
}

// reasonKept is one string for all that have the same reason.
func reasonKept(reason string) string {
	if i := strength(reason); i >= 0 {
		return SuppressionReasons[i]
	}
	return reason
}

// Suppressed counts the addresses that are suppressed.
func (r *Registry) Suppressed() int { return int(r.suppressions.count.Load()) }

// SuppressedBy counts them by reason.
func (r *Registry) SuppressedBy() map[string]int {
	counts := make(map[string]int, len(SuppressionReasons))
	r.suppressions.mu.RLock()
	defer r.suppressions.mu.RUnlock()
	for _, s := range r.suppressions.all {
		counts[s.reason]++
	}
	return counts
}

// get returns what is known of an address at a moment.
func (s *suppressions) get(key suppressionKey, now int64) (suppressed, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	found, ok := s.all[key]
	return found, ok && (found.until == 0 || now < found.until)
}

func (s *suppressions) tagged(tag uint64) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.tags[tag] > 0
}

// inForce returns the suppression of an address in normal form: that of the
// service, else that of all services.
func (r *Registry) inForce(service uint32, kind uint8, address string) (key suppressionKey, s suppressed, ok bool) {
	if r.suppressions.count.Load() == 0 {
		return key, s, false
	}
	asked := r.suppressionOf(service, kind, address)
	now := r.opt.Now().UnixNano()
	key = keyOf(&asked)
	if s, ok = r.suppressions.get(key, now); !ok {
		key.service = allServices
		s, ok = r.suppressions.get(key, now)
	}
	return key, s, ok
}

// mayReach refuses an address that is suppressed.
func (r *Registry) mayReach(service uint32, kind uint8, address, at string) error {
	if r.suppressions.count.Load() == 0 {
		return nil
	}
	key, s, ok := r.inForce(service, kind, address)
	if !ok {
		return nil
	}
	return refusedBy(key, s, at)
}

// refusedBy says why an address cannot be subscribed, and what can be done about it.
func refusedBy(key suppressionKey, s suppressed, at string) error {
	e := &fanfare.Error{Code: fanfare.Conflict, Pointer: at, Message: "the address is on the suppression list: " + s.reason}
	lift := "fanfare suppression lift, or DELETE /v1/suppressions?address="
	switch {
	case key.service == allServices:
		e.Message += ", for all services"
		e.Hint = "an operator of the server can lift that with fanfare suppression lift --all-services, or DELETE /v1/suppressions?address=…&all_services=true"
	case s.reason == HardBounce, s.reason == SoftBounces:
		e.Hint = "messages to it came back; once the mailbox works again, lift that with " + lift
	default:
		e.Hint = "if its owner asks for messages again, lift that with " + lift
	}
	return e
}

// mayBeSent is mayReach for a message to somebody by name: of them, only who was
// forgotten is refused; what goes to the others is settled as suppressed.
func (r *Registry) mayBeSent(service uint32, kind uint8, address, at string) error {
	key, s, ok := r.inForce(service, kind, address)
	if !ok || s.reason != Erased {
		return nil
	}
	return refusedBy(key, s, at)
}

// Suppressing returns why nothing may be sent to an address in normal form over a
// channel, "" where something may. It is asked before each message: seen is what the
// caller remembers between two questions about the same address, 0 before the first,
// and makes all but the first nearly free while the list does not change.
func (r *Registry) Suppressing(c *catalog.Channel, address string, seen *uint64) string {
	version := r.suppressions.version.Load() + 1
	if *seen == version {
		return ""
	}
	*seen = version
	if r.suppressions.count.Load() == 0 {
		return ""
	}
	kind := catalog.AddressKindOf(c.Driver)
	if !r.suppressions.tagged(r.tag(kind, folded(kind, address))) {
		return ""
	}
	svc, err := r.Snapshot().Service(c.Service)
	if err != nil {
		return ""
	}
	key, s, ok := r.inForce(svc.Number, kind, address)
	switch {
	case !ok:
		return ""
	case key.service == allServices:
		*seen = 0 // it is asked again, as long as it is refused
		return s.reason + ", for all services"
	}
	*seen = 0
	return s.reason
}

// Unsuppress takes an address off the list of a service, or with no service off
// that of all services. One that is not on it is no error. What came back of it
// until now is forgotten with that, and the rules of bounces count anew.
func (r *Registry) Unsuppress(ctx context.Context, service, address string) error {
	return r.lift(ctx, service, address, SourceAPI, func(string) bool { return true })
}

// Unwelcome reports whether an address is on the list of a service because its owner
// wanted nothing at all.
func (r *Registry) Unwelcome(service, address string) bool {
	asked, err := r.suppressionNamed(service, address)
	if err != nil {
		return false
	}
	is, known := r.suppressions.get(keyOf(&asked), r.opt.Now().UnixNano())
	return known && is.reason == NotWanted
}

// Welcome takes an address that is Unwelcome off the list: its owner has asked for
// messages again. No other reason is theirs to take back, and what holds for all
// services is not the business of one.
func (r *Registry) Welcome(ctx context.Context, service, address, source string) error {
	return r.lift(ctx, service, address, source, func(reason string) bool { return reason == NotWanted })
}

func (r *Registry) lift(ctx context.Context, service, address, source string, may func(reason string) bool) error {
	asked, err := r.suppressionNamed(service, address)
	if err != nil {
		return err
	}
	return r.change(ctx, func(g *group) ([]fanfare.RowID, error) {
		is, known, err := g.suppression(keyOf(&asked))
		if err == nil && known && may(is.reason) {
			asked.Lifted, asked.At, asked.Reason, asked.Until = true, g.batch.At, is.reason, is.until
			g.keepSuppression(asked)
			g.deed = audit.Operation{Service: service, Action: "lift", Kind: "suppression", Name: ""} // of whom is not told
			err = g.tellSuppression(control.NoticeLifted, &asked, source)
		}
		return nil, err
	})
}

// suppressionService is the number of a service, or of all of them.
func (r *Registry) suppressionService(name string) (uint32, error) {
	if name == "" {
		return allServices, nil
	}
	svc, err := r.Snapshot().Service(name)
	if err != nil {
		return 0, err
	}
	return svc.Number, nil
}

// suppressionNamed is what would be kept of an address as it is written; without a
// service, for all services.
func (r *Registry) suppressionNamed(service, address string) (suppression.Record, error) {
	number, err := r.suppressionService(service)
	if err != nil {
		return suppression.Record{}, err
	}
	kind := catalog.GuessAddressKind(address)
	normal, err := r.normal(kind, address)
	if err != nil {
		return suppression.Record{}, inputerror.Invalid("/address", "", "%s", noAddress(address, "", err))
	}
	s := r.suppressionOf(number, kind, normal)
	s.Address = normal
	return s, nil
}
