package registry

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/catalog/audit"
	"fanfare.dev/fanfare/internal/inputerror"
	"fanfare.dev/fanfare/internal/people/suppression"
	"fanfare.dev/fanfare/internal/store/control"
)

// Why an address is suppressed, the weakest reason first: a stronger one takes the
// place of a weaker one, and never the other way round.
const (
	SoftBounces = "soft_bounces" // too many messages were refused for now
	Imported    = "imported"     // it was on the list of another system
	NotWanted   = "unsubscribed" // its owner wants nothing at all
	HardBounce  = "hard_bounce"  // there is no such mailbox
	ByHand      = "manual"       // an operator asked for it
	Complaint   = "complaint"    // its owner called a message spam
	Erased      = "erased"       // its owner was forgotten, and wants to be left alone
)

// SuppressionReasons lists them, the weakest first.
var SuppressionReasons = []string{SoftBounces, Imported, NotWanted, HardBounce, ByHand, Complaint, Erased}

// allServices is the number in the place of a service of what holds for all of them.
const allServices = 0

// maxSourceBytes is how long the source of a suppression may be.
const maxSourceBytes = 200

// A SuppressionAsk asks that nobody writes to an address any more.
type SuppressionAsk struct {
	Service string    // "": all services
	Address string    // as it is written
	Hash    string    // instead of it: what an export of this server has of one that was erased
	Reason  string    // one of SuppressionReasons; of Erased, nothing but a hash is kept
	Source  string    // who says so: "smtp 192.0.2.1", a file, a key
	Until   time.Time // zero, or after 2262: for good
}

// Suppress puts addresses of which enough came back on the suppression list, all or none. When it returns
// that is durable, and whatever asks whether an address may be written to knows
// it. An address that is on the list already stays there with the stronger of the
// two reasons and for the longer of the two times, so that asking twice is asking
// once. The pointer of an error begins with the index of the ask.
func (r *Registry) Suppress(ctx context.Context, asks []SuppressionAsk) error {
	records := make([]suppression.Record, len(asks))
	for i := range asks {
		record, err := r.CheckSuppression(&asks[i])
		if err != nil {
			return inputerror.WithPrefix(fmt.Sprintf("/%d", i), err)
		}
		records[i] = record
	}
	_, err := r.suppress(ctx, records, SourceReturn)
	return err
}

// SuppressRecords is Suppress, by a program, of what CheckSuppression returned. It says
// which of them say more than the list did.
func (r *Registry) SuppressRecords(ctx context.Context, records []suppression.Record) (added []bool, err error) {
	return r.suppress(ctx, records, SourceAPI)
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

// lastNano is the latest time, in 2262, that Unix nanoseconds tell. Who writes a later
// one, such as 9999-12-31, means for good.
var lastNano = time.Unix(0, math.MaxInt64)

// CheckSuppression returns what would be kept of an ask.
func (r *Registry) CheckSuppression(ask *SuppressionAsk) (s suppression.Record, err error) {
	if !slices.Contains(SuppressionReasons, ask.Reason) {
		return s, inputerror.Invalid("/reason", "use one of "+strings.Join(SuppressionReasons, ", "), "%s is no reason", inputerror.Quote(ask.Reason))
	}
	if len(ask.Source) > maxSourceBytes || strings.ContainsFunc(ask.Source, func(c rune) bool { return c < ' ' || c == 0x7f }) {
		return s, inputerror.Invalid("/source", "", "the source is not one line of at most %d bytes", maxSourceBytes)
	}
	if !ask.Until.IsZero() && !ask.Until.After(r.opt.Now()) {
		return s, inputerror.Invalid("/until", "leave it out, and it is for good", "%s is over", ask.Until.UTC().Format(time.RFC3339))
	}
	if ask.Hash != "" && ask.Address == "" {
		s, err = r.suppressionHashed(ask.Service, ask.Hash)
	} else {
		s, err = r.suppressionNamed(ask.Service, ask.Address)
	}
	if err != nil {
		return s, err
	}
	s.Reason, s.Source = ask.Reason, ask.Source
	if !ask.Until.IsZero() && ask.Until.Before(lastNano) {
		s.Until = ask.Until.UnixNano()
	}
	if s.Reason == Erased {
		s.Address, s.Source = "", ""
	}
	return s, nil
}

// suppress puts an address on the list, where that says more than the list does.
func (g *group) suppress(asked suppression.Record, source string) (more bool, err error) {
	is, known, err := g.suppression(keyOf(&asked))
	if err != nil {
		return false, err
	}
	asked.At = g.batch.At
	if known {
		stronger, longer := strength(asked.Reason) > strength(is.reason), outlasts(asked.Until, is.until)
		if !stronger && !longer || is.reason == Erased {
			return false, nil
		}
		if !stronger {
			asked.Reason, asked.At = is.reason, is.at
		}
		if !longer {
			asked.Until = is.until
		}
	}
	g.keepSuppression(asked)
	return true, g.tellSuppression(control.NoticeSuppressed, &asked, source)
}

// outlasts compares ends, of which 0 is none.
func outlasts(a, b int64) bool { return b != 0 && (a == 0 || a > b) }

func strength(reason string) int { return slices.Index(SuppressionReasons, reason) }

// suppression returns what the list says of an address in the group's eyes.
func (g *group) suppression(key suppressionKey) (s suppressed, known bool, err error) {
	if r, ok := g.suppressed[key]; ok {
		return suppressed{r.Reason, r.At, r.Until, r.Tag}, !r.Lifted, nil
	}
	if g.w.flight != nil && len(g.w.flight.suppressed) > 0 {
		if g.w.land(); g.aborted {
			return s, false, errAborted
		}
	}
	s, known = g.w.r.suppressions.get(key, g.batch.At)
	return s, known, nil
}

// keepSuppression has the list say something else of an address.
func (g *group) keepSuppression(s suppression.Record) {
	g.effects++
	if g.suppressed == nil {
		g.suppressed = map[suppressionKey]suppression.Record{}
	}
	g.suppressed[keyOf(&s)] = s
	g.batch.Suppressions = append(g.batch.Suppressions, s)
}

// mayAdd refuses one more subscription to an address that is suppressed; what it has
// already stays, and can be changed.
func (g *group) mayAdd(owner fanfare.RowID, isNew bool) error {
	if isNew || g.w.r.suppressions.count.Load() == 0 {
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
	asked := g.w.r.suppressionOf(row.Service, row.Kind, row.Address)
	asked.Reason, asked.At = Erased, g.batch.At
	for _, service := range [...]uint32{row.Service, allServices} {
		asked.Service = service
		is, known, err := g.suppression(keyOf(&asked))
		switch {
		case err != nil:
			return err
		case service == row.Service && suppress:
			g.keepSuppression(asked)
		case known:
			bare := asked
			bare.Reason, bare.At, bare.Until = is.reason, is.at, is.until
			g.keepSuppression(bare)
		}
	}
	return nil
}
