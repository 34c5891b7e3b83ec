package registry

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/catalog/audit"
	"fanfare.dev/fanfare/internal/inputerror"
	"fanfare.dev/fanfare/internal/people"
	"fanfare.dev/fanfare/internal/people/suppression"
	"fanfare.dev/fanfare/internal/store/control"
)

// Suppress puts addresses of which enough came back on the suppression list, all or none. When it returns
// that is durable, and whatever asks whether an address may be written to knows
// it. An address that is on the list already stays there with the stronger of the
// two reasons and for the longer of the two times, so that asking twice is asking
// once. The pointer of an error begins with the index of the ask.
func (r *Registry) Suppress(ctx context.Context, asks []suppression.Request) error {
	records := make([]suppression.Record, len(asks))
	for i := range asks {
		record, err := r.CheckSuppression(&asks[i])
		if err != nil {
			return inputerror.WithPrefix(fmt.Sprintf("/%d", i), err)
		}
		records[i] = record
	}
	_, err := r.suppress(ctx, records, people.SourceReturn)
	return err
}

// SuppressRecords is Suppress, by a program, of what CheckSuppression returned. It says
// which of them say more than the list did.
func (r *Registry) SuppressRecords(ctx context.Context, records []suppression.Record) (added []bool, err error) {
	return r.suppress(ctx, records, people.SourceAPI)
}

func (r *Registry) suppress(ctx context.Context, records []suppression.Record, source string) (added []bool, err error) {
	if len(records) == 0 {
		return nil, nil
	}
	added = make([]bool, len(records))
	err = r.change(ctx, func(g *group) ([]fanfare.RowID, error) {
		if err := g.readHolders(records); err != nil {
			return nil, err
		}
		for i := range records {
			var err error
			if added[i], err = g.suppress(records[i], source); err != nil {
				return nil, err
			}
		}
		g.deed = audit.Operation{Service: g.w.r.Snapshot().ServiceNames[records[0].Service], Action: "suppress", Kind: "suppression", Name: ""} // whom is not told
		return nil, nil
	})
	return added, err
}

// CheckSuppression returns what would be kept of an ask.
func (r *Registry) CheckSuppression(ask *suppression.Request) (s suppression.Record, err error) {
	if !slices.Contains(suppression.Reasons, ask.Reason) {
		return s, inputerror.Invalid("/reason", "use one of "+strings.Join(suppression.Reasons, ", "), "%s is no reason", inputerror.Quote(ask.Reason))
	}
	if len(ask.Source) > suppression.MaxSourceBytes || strings.ContainsFunc(ask.Source, func(c rune) bool { return c < ' ' || c == 0x7f }) {
		return s, inputerror.Invalid("/source", "", "the source is not one line of at most %d bytes", suppression.MaxSourceBytes)
	}
	if !ask.Until.IsZero() && !ask.Until.After(r.opt.Now()) {
		return s, inputerror.Invalid("/until", "leave it out, and it is for good", "%s is over", ask.Until.UTC().Format(time.RFC3339))
	}
	if ask.Hash != "" && ask.Address == "" {
		var service uint32
		if service, err = r.suppressionService(ask.Service); err == nil {
			s, err = r.suppressions.ParseHash(ask.Hash)
			s.Service = service
		}
	} else {
		s, err = r.suppressionNamed(ask.Service, ask.Address)
	}
	if err != nil {
		return s, err
	}
	s.Reason, s.Source = ask.Reason, ask.Source
	if !ask.Until.IsZero() && ask.Until.Before(suppression.LastNano) {
		s.Until = ask.Until.UnixNano()
	}
	if s.Reason == suppression.ReasonErased {
		s.Address, s.Source = "", ""
	}
	return s, nil
}

// suppress puts an address on the list, where that says more than the list does.
func (g *group) suppress(asked suppression.Record, source string) (more bool, err error) {
	is, known, err := g.suppression(suppression.KeyOf(&asked))
	if err != nil {
		return false, err
	}
	asked.At = g.batch.At
	if known {
		stronger, longer := suppression.Strength(asked.Reason) > suppression.Strength(is.Reason), suppression.Outlasts(asked.Until, is.Until)
		if !stronger && !longer || is.Reason == suppression.ReasonErased {
			return false, nil
		}
		if !stronger {
			asked.Reason, asked.At = is.Reason, is.At
		}
		if !longer {
			asked.Until = is.Until
		}
	}
	g.keepSuppression(asked)
	return true, g.tellSuppression(control.NoticeSuppressed, &asked, source)
}

// suppression returns what the list says of an address in the group's eyes.
func (g *group) suppression(key suppression.Key) (s suppression.State, known bool, err error) {
	if r, ok := g.suppressed[key]; ok {
		return suppression.State{Reason: r.Reason, At: r.At, Until: r.Until, Tag: r.Tag}, !r.Lifted, nil
	}
	if g.w.flight != nil && len(g.w.flight.suppressed) > 0 {
		if g.w.land(); g.aborted {
			return s, false, errAborted
		}
	}
	s, known = g.w.r.suppressions.Get(key, g.batch.At)
	return s, known, nil
}

// keepSuppression has the list say something else of an address.
func (g *group) keepSuppression(s suppression.Record) {
	g.effects++
	if g.suppressed == nil {
		g.suppressed = map[suppression.Key]suppression.Record{}
	}
	g.suppressed[suppression.KeyOf(&s)] = s
	g.batch.Suppressions = append(g.batch.Suppressions, s)
}

// mayAdd refuses one more subscription to an address that is suppressed; what it has
// already stays, and can be changed.
func (g *group) mayAdd(owner fanfare.RowID, isNew bool) error {
	if isNew || g.w.r.suppressions.Len() == 0 {
		return nil // who is new was asked for
	}
	row, err := g.subscriber(owner)
	if err != nil {
		return g.w.r.unreadable(err)
	}
	if row.Kind == 0 {
		return nil
	}
	return g.w.r.mayReach(row.Service, row.Kind, row.Address, "/to")
}

// forgetAddress leaves of the suppressions of an address nothing but the hash:
// with suppress its own service writes to it never again.
func (g *group) forgetAddress(row *control.SubscriberRecord, suppress bool) error {
	asked := g.w.r.suppressions.NewRecord(row.Service, row.Kind, row.Address)
	asked.Reason, asked.At = suppression.ReasonErased, g.batch.At
	for _, service := range [...]uint32{row.Service, suppression.AllServices} {
		asked.Service = service
		is, known, err := g.suppression(suppression.KeyOf(&asked))
		switch {
		case err != nil:
			return err
		case service == row.Service && suppress:
			g.keepSuppression(asked)
		case known:
			bare := asked
			bare.Reason, bare.At, bare.Until = is.Reason, is.At, is.Until
			g.keepSuppression(bare)
		}
	}
	return nil
}
