package registry

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"strings"
	"sync"
	"time"

	"golang.org/x/text/unicode/norm"

	"fanfare.dev/fanfare"
)

// A SuppressionHash is the HMAC-SHA-256 of the normal form of an address.
type SuppressionHash [sha256.Size]byte

// A Suppression is an address that nobody may subscribe or write to.
type Suppression struct {
	Address string    `json:"address" doc:"as it was asked for; it is not kept"`
	Reason  string    `json:"reason" doc:"why it is suppressed: erased"`
	At      time.Time `json:"at" doc:"since when"`
}

// suppressions are the addresses that are suppressed, by what is kept of them.
type suppressions struct {
	mu  sync.RWMutex
	all map[suppressionKey]SuppressionRecord
}

type suppressionKey struct {
	service uint32
	kind    uint8
	hash    SuppressionHash
}

func (s *SuppressionRecord) key() suppressionKey {
	return suppressionKey{s.Service, s.Kind, s.Hash}
}

func (s *suppressions) set(records []SuppressionRecord) {
	if len(records) == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all == nil {
		s.all = map[suppressionKey]SuppressionRecord{}
	}
	for i := range records {
		if records[i].Lifted {
			delete(s.all, records[i].key())
		} else {
			s.all[records[i].key()] = records[i]
		}
	}
}

// Suppressed counts the addresses that are suppressed.
func (r *Registry) Suppressed() int {
	r.suppressions.mu.RLock()
	defer r.suppressions.mu.RUnlock()
	return len(r.suppressions.all)
}

func (s *suppressions) empty() bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return len(s.all) == 0
}

func (s *suppressions) get(key suppressionKey) (SuppressionRecord, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	found, ok := s.all[key]
	return found, ok
}

// suppressionOf is what would be kept of an address in normal form. A mail address
// in other capitals, or in another form of Unicode, reaches the same person nearly
// everywhere, although RFC 5321 leaves that to the domain: who asked not to be
// written to is not written to so either.
func (r *Registry) suppressionOf(service uint32, kind uint8, address string) SuppressionRecord {
	mac := hmac.New(sha256.New, r.opt.SuppressionKey)
	if kind == kindMail {
		address = strings.ToLower(norm.NFC.String(address))
	}
	mac.Write([]byte(address))
	s := SuppressionRecord{Service: service, Kind: kind}
	mac.Sum(s.Hash[:0])
	return s
}

// mayReach refuses an address that is suppressed.
func (r *Registry) mayReach(service uint32, kind uint8, address, at string) error {
	if r.suppressions.empty() {
		return nil
	}
	asked := r.suppressionOf(service, kind, address)
	_, here := r.suppressions.get(asked.key())
	asked.Service = allServices
	if _, everywhere := r.suppressions.get(asked.key()); !here && !everywhere {
		return nil
	}
	return &fanfare.Error{Code: fanfare.Conflict, Pointer: at, Message: "the address is on the suppression list",
		Hint: "if its owner asks for messages again, lift that with DELETE /v1/suppressions?address="}
}

// Suppression returns what is known of a suppressed address; NotFound is one
// that is not suppressed.
func (r *Registry) Suppression(_ context.Context, service, address string) (Suppression, error) {
	svc, err := r.config.Load().service(service)
	if err != nil {
		return Suppression{}, err
	}
	kind := kindWritten(address)
	normal, err := r.normal(kind, address)
	if err != nil {
		return Suppression{}, invalid("", "", "%s is not an address: %s", quote(address), reason(err))
	}
	asked := r.suppressionOf(svc.number, kind, normal)
	found, ok := r.suppressions.get(asked.key())
	if !ok {
		return Suppression{}, &fanfare.Error{Code: fanfare.NotFound, Message: "the address is not suppressed"}
	}
	return Suppression{Address: normal, Reason: found.Reason, At: time.Unix(0, found.At).UTC()}, nil
}

// Unsuppress takes an address off the list. One that is not on it is no error.
func (r *Registry) Unsuppress(ctx context.Context, service, address string) error {
	svc, err := r.config.Load().service(service)
	if err != nil {
		return err
	}
	kind := kindWritten(address)
	normal, err := r.normal(kind, address)
	if err != nil {
		return invalid("", "", "%s is not an address: %s", quote(address), reason(err))
	}
	return r.changeAlone(ctx, func(g *group) ([]fanfare.Place, error) {
		asked := r.suppressionOf(svc.number, kind, normal)
		if _, ok := r.suppressions.get(asked.key()); ok {
			asked.Lifted = true
			g.batch.Suppressions = append(g.batch.Suppressions, asked)
			g.deed = Deed{svc.name, "lift", "suppression", ""} // of whom is not told
		}
		return nil, nil
	})
}
