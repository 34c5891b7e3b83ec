package report

import (
	"context"
	"math"
	"time"

	"fanfare.dev/fanfare"
)

// A Pick filters a list and has its cursor. The zero value is the whole list. Times are those at which events were appended;
// Since is inclusive and Until exclusive.
type Pick struct {
	Service, Topic, Lane string
	Kind                 string // fanfare.KindEvent, and so on, or "" for all
	Channel              string // of deliveries
	State                string // of the broadcast, or of the delivery
	Since, Until         time.Time

	After string // public id of the last element of the previous page; "": from the newest on
	Limit int
}

// wants reports whether the list may contain b.
func (p *Pick) wants(b *fanfare.Broadcast) bool {
	return (p.Service == "" || b.Service == p.Service) && (p.Topic == "" || b.Topic == p.Topic) && (p.Lane == "" || b.Lane == p.Lane) && (p.Kind == "" || b.Kind == p.Kind) &&
		(p.Since.IsZero() || !b.Stages.Kept.Before(p.Since)) && (p.Until.IsZero() || b.Stages.Kept.Before(p.Until))
}

// day reports whether a day may have elements of the list, and whether it and all older days are too old. A day is that of
// receipt, a moment before an event is appended.
func (p *Pick) day(day fanfare.Day) (look, old bool) {
	const receipt = time.Minute
	if !p.Since.IsZero() && (day + 1).Time().Add(receipt).Before(p.Since) {
		return false, true
	}
	return p.Until.IsZero() || day.Time().Before(p.Until), false
}

// maxLooks is the maximum number of broadcasts that are read for one page. With a filter that matches little, a page may be
// short or empty and still have a next page.
const maxLooks = 20_000

// looksAtOnce is how many broadcasts are read together.
const looksAtOnce = 500

// Broadcasts lists broadcasts, the newest first. next is the cursor of the next page, "" at the end. Broadcasts that begin
// while a client reads pages come before the pages that were read, so no element comes twice.
func (t *Traces) Broadcasts(ctx context.Context, p Pick) (list []fanfare.Broadcast, next string, err error) {
	days, err := t.Store.Days(ctx)
	if err != nil {
		return nil, "", err
	}
	after, _ := fanfare.ParseEventRef(p.After) // "": nothing, which is no day
	list = []fanfare.Broadcast{}
	looks := 0
	for _, day := range days {
		look, old := p.day(day)
		if old {
			break
		}
		if !look || p.After != "" && day > after.Day {
			continue
		}
		before := fanfare.EventSeq(math.MaxInt64)
		if p.After != "" && day == after.Day {
			before = after.Seq
		}
		for {
			found, err := t.Store.Broadcasts(ctx, day, p.Service, before, looksAtOnce)
			if gone(err) {
				break
			}
			if err != nil {
				return nil, "", err
			}
			for _, b := range found {
				ref, ok := fanfare.ParseEventRef(b.Event)
				if !ok {
					continue
				}
				before = ref.Seq
				looks++
				if p.wants(b) && (p.State == "" || b.State == p.State || p.State == isPaused && b.State == running) {
					if len(list) == p.Limit {
						return list, list[len(list)-1].Event, nil
					}
					now, err := t.soFar(ctx, ref, b)
					if err != nil && !gone(err) {
						return nil, "", err
					}
					if err == nil && (p.State == "" || now.State == p.State) {
						list = append(list, *now)
					}
				}
				if looks == maxLooks {
					return list, b.Event, nil
				}
			}
			if len(found) < looksAtOnce {
				break
			}
		}
	}
	return list, "", nil
}
