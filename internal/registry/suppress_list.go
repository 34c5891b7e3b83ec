package registry

import (
	"context"
	"slices"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/catalog/audit"
	"fanfare.dev/fanfare/internal/people/suppression"
)

func (r *Registry) shownSuppression(s *suppression.Record) suppression.Suppression {
	shown := suppression.Suppression{Address: s.Address, Reason: s.Reason, Source: s.Source, At: time.Unix(0, s.At).UTC(), AllServices: s.Service == suppression.AllServices}
	if s.Address == "" {
		shown.Hash = r.suppressions.HashText(s)
	}
	if s.Until != 0 {
		shown.Until = time.Unix(0, s.Until).UTC()
	}
	return shown
}

// Suppression returns what is known of a suppressed address: what its service says
// of it, or else what holds for all services; without a service, the latter.
// NotFound is an address that is not suppressed.
func (r *Registry) Suppression(ctx context.Context, service, address string) (suppression.Suppression, error) {
	asked, err := r.suppressionNamed(service, address)
	if err != nil {
		return suppression.Suppression{}, err
	}
	key, is, ok := r.suppressions.InForce(asked.Service, asked.Kind, asked.Address, r.opt.Now().UnixNano())
	if !ok {
		return suppression.Suppression{}, &fanfare.Error{Code: fanfare.NotFound, Message: "the address is not suppressed"}
	}
	kept := []suppression.Record{key.Record(is)}
	if err := r.opt.Store.SuppressionRecords(ctx, kept); err != nil {
		return suppression.Suppression{}, r.unreadable(err)
	}
	shown := r.shownSuppression(&kept[0])
	shown.Address, shown.Hash = asked.Address, "" // whoever asks knows it
	return shown, nil
}

// suppressionsAtOnce is how many are read from the store at a time.
const suppressionsAtOnce = 1000

// Suppressions returns a part of the list, the latest first, behind a cursor or from
// the first on, and where the next part begins, nil at the end.
func (r *Registry) Suppressions(ctx context.Context, f suppression.Filter, after *suppression.Cursor, limit int) (page []suppression.Suppression, next *suppression.Cursor, err error) {
	all, err := r.picked(f, after)
	if err != nil {
		return nil, nil, err
	}
	if len(all) > limit {
		all = all[:limit]
		last := &all[limit-1]
		next = &suppression.Cursor{At: last.At, Kind: last.Kind, Hash: last.Hash}
	}
	err = r.readSuppressions(ctx, all, func(s *suppression.Suppression) error {
		page = append(page, *s)
		return nil
	})
	return page, next, err
}

// EachSuppression visits the whole list as it is when it begins, the latest first.
func (r *Registry) EachSuppression(ctx context.Context, f suppression.Filter, visit func(*suppression.Suppression) error) error {
	all, err := r.picked(f, nil)
	if err != nil {
		return err
	}
	return r.readSuppressions(ctx, all, visit)
}

// picked returns what a filter picks and a cursor leaves of the list, in its order,
// as far as memory has it.
func (r *Registry) picked(f suppression.Filter, after *suppression.Cursor) ([]suppression.Record, error) {
	service, err := r.suppressionService(f.Service)
	if err != nil {
		return nil, err
	}
	return r.suppressions.Select(service, f.Reason, after, r.opt.Now().UnixNano()), nil
}

// readSuppressions adds to some suppressions what only the store has.
func (r *Registry) readSuppressions(ctx context.Context, all []suppression.Record, visit func(*suppression.Suppression) error) error {
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
	over := r.suppressions.Expired(r.opt.Now().UnixNano(), maxJob)
	if len(over) == 0 {
		return nil
	}
	return r.change(audit.WithoutActor(ctx), func(g *group) ([]fanfare.RowID, error) {
		for i := range over {
			_, renewed, err := g.suppression(suppression.KeyOf(&over[i]))
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
func (r *Registry) SuppressionsOf(ctx context.Context, service string, places []fanfare.RowID, visit func(*suppression.Suppression) error) error {
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
