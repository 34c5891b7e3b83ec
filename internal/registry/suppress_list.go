package registry

import (
	"bytes"
	"cmp"
	"context"
	"slices"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/catalog/audit"
	"fanfare.dev/fanfare/internal/people/suppression"
)

// A Suppression is an address that nobody may subscribe or write to.
type Suppression struct {
	Address     string    `json:"address,omitempty" doc:"absent of one that is kept as a hash alone: its owner was forgotten"`
	Hash        string    `json:"hash,omitempty" doc:"of such a one; an import into this server takes it"`
	Reason      string    `json:"reason" doc:"why it is suppressed: soft_bounces, imported, unsubscribed, hard_bounce, manual, complaint or erased"`
	Source      string    `json:"source,omitempty" doc:"who says so"`
	At          time.Time `json:"at" doc:"since when"`
	Until       time.Time `json:"until,omitzero" doc:"until when; absent: for good"`
	AllServices bool      `json:"all_services,omitempty" doc:"nobody on this server writes to it, not this service alone"`
}

func (r *Registry) shownSuppression(s *suppression.Record) Suppression {
	shown := Suppression{Address: s.Address, Reason: s.Reason, Source: s.Source, At: time.Unix(0, s.At).UTC(), AllServices: s.Service == allServices}
	if s.Address == "" {
		shown.Hash = r.hashText(s)
	}
	if s.Until != 0 {
		shown.Until = time.Unix(0, s.Until).UTC()
	}
	return shown
}

// Suppression returns what is known of a suppressed address: what its service says
// of it, or else what holds for all services; without a service, the latter.
// NotFound is an address that is not suppressed.
func (r *Registry) Suppression(ctx context.Context, service, address string) (Suppression, error) {
	asked, err := r.suppressionNamed(service, address)
	if err != nil {
		return Suppression{}, err
	}
	key, is, ok := r.inForce(asked.Service, asked.Kind, asked.Address)
	if !ok {
		return Suppression{}, &fanfare.Error{Code: fanfare.NotFound, Message: "the address is not suppressed"}
	}
	kept := []suppression.Record{key.record(is)}
	if err := r.opt.Store.SuppressionRecords(ctx, kept); err != nil {
		return Suppression{}, r.unreadable(err)
	}
	shown := r.shownSuppression(&kept[0])
	shown.Address, shown.Hash = asked.Address, "" // whoever asks knows it
	return shown, nil
}

// A SuppressionFilter picks from the list. Empty fields pick all.
type SuppressionFilter struct {
	Service string // "": those of all services alone
	Reason  string
}

// A SuppressionCursor is a place in the list, which has the latest first.
type SuppressionCursor struct {
	At   int64
	Kind uint8
	Hash suppression.Hash
}

// behind reports whether a suppression is shown later than the cursor.
func (c *SuppressionCursor) behind(s *suppression.Record) bool {
	return later(&suppression.Record{At: c.At, Kind: c.Kind, Hash: c.Hash}, s) < 0
}

// later orders the list.
func later(a, b *suppression.Record) int {
	return cmp.Or(cmp.Compare(b.At, a.At), cmp.Compare(b.Kind, a.Kind), bytes.Compare(b.Hash[:], a.Hash[:]))
}

// suppressionsAtOnce is how many are read from the store at a time.
const suppressionsAtOnce = 1000

// Suppressions returns a part of the list, the latest first, behind a cursor or from
// the first on, and where the next part begins, nil at the end.
func (r *Registry) Suppressions(ctx context.Context, f SuppressionFilter, after *SuppressionCursor, limit int) (page []Suppression, next *SuppressionCursor, err error) {
	all, err := r.picked(f, after)
	if err != nil {
		return nil, nil, err
	}
	if len(all) > limit {
		all = all[:limit]
		last := &all[limit-1]
		next = &SuppressionCursor{last.At, last.Kind, last.Hash}
	}
	err = r.readSuppressions(ctx, all, func(s *Suppression) error {
		page = append(page, *s)
		return nil
	})
	return page, next, err
}

// EachSuppression visits the whole list as it is when it begins, the latest first.
func (r *Registry) EachSuppression(ctx context.Context, f SuppressionFilter, visit func(*Suppression) error) error {
	all, err := r.picked(f, nil)
	if err != nil {
		return err
	}
	return r.readSuppressions(ctx, all, visit)
}

// picked returns what a filter picks and a cursor leaves of the list, in its order,
// as far as memory has it.
func (r *Registry) picked(f SuppressionFilter, after *SuppressionCursor) ([]suppression.Record, error) {
	service, err := r.suppressionService(f.Service)
	if err != nil {
		return nil, err
	}
	now := r.opt.Now().UnixNano()
	var all []suppression.Record
	r.suppressions.mu.RLock()
	for key, s := range r.suppressions.all {
		if key.service != service || f.Reason != "" && f.Reason != s.reason || s.until != 0 && s.until <= now {
			continue
		}
		if record := key.record(s); after == nil || after.behind(&record) {
			all = append(all, record)
		}
	}
	r.suppressions.mu.RUnlock()
	slices.SortFunc(all, func(a, b suppression.Record) int { return later(&a, &b) })
	return all, nil
}

// readSuppressions adds to some suppressions what only the store has.
func (r *Registry) readSuppressions(ctx context.Context, all []suppression.Record, visit func(*Suppression) error) error {
	for some := range slices.Chunk(all, suppressionsAtOnce) {
		if err := r.opt.Store.SuppressionRecords(ctx, some); err != nil {
			return r.unreadable(err)
		}
		for i := range some {
			shown := r.shownSuppression(&some[i])
			if err := visit(&shown); err != nil {
				return err
			}
		}
	}
	return nil
}

// TrimSuppressions removes those whose time is over.
func (r *Registry) TrimSuppressions(ctx context.Context) error {
	now := r.opt.Now().UnixNano()
	var over []suppression.Record
	r.suppressions.mu.RLock()
	for key, s := range r.suppressions.all {
		if s.until != 0 && s.until <= now && len(over) < maxJob {
			over = append(over, suppression.Record{Service: key.service, Kind: key.kind, Hash: key.hash, Until: s.until, Lifted: true})
		}
	}
	r.suppressions.mu.RUnlock()
	if len(over) == 0 {
		return nil
	}
	return r.change(audit.WithoutActor(ctx), func(g *group) ([]fanfare.RowID, error) {
		for i := range over {
			_, renewed, err := g.suppression(keyOf(&over[i]))
			if err != nil {
				return nil, err
			}
			if !renewed {
				g.keepSuppression(over[i])
			}
		}
		return nil, nil
	})
}

// SuppressionsOf visits what the list says of the addresses of a subscriber.
func (r *Registry) SuppressionsOf(ctx context.Context, service string, places []fanfare.RowID, visit func(*Suppression) error) error {
	rows, err := r.records(ctx, places)
	if err != nil {
		return r.unreadable(err)
	}
	for _, p := range places {
		row := rows[p]
		if row == nil || row.Address == "" {
			continue
		}
		s, err := r.Suppression(ctx, service, row.Address)
		if fanfare.CodeOf(err) == fanfare.NotFound {
			continue
		}
		if err == nil {
			err = visit(&s)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
