package storetest_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/store/deliveries"
)

// farAway is after all times of the tests.
var farAway = noon.Add(1000 * time.Hour)

// questions is what a record is asked of a day.
type questions struct {
	events          []fanfare.EventSeq
	partitions      []int
	from, to        uint32 // positions
	service         string
	after, before   fanfare.EventSeq
	limit           int
	now             time.Time
	people          []fanfare.RowID
	ids, references []string
}

// answerLines are answers in a form in which two of them are compared.
type answerLines []string

func (l *answerLines) add(what string, of any, form string, args ...any) {
	*l = append(*l, fmt.Sprintf("%s %v: ", what, of)+fmt.Sprintf(form, args...))
}

func asJSON(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err) // what was made by a test
	}
	return string(text)
}

// answersOf asks a record.
func answersOf(s *deliveries.Store, of fanfare.Day, q *questions) (lines answerLines, err error) {
	ctx := context.Background()
	var errs []error
	failed := func(err error) bool {
		if err != nil {
			errs = append(errs, err)
		}
		return err != nil
	}
	for _, seq := range q.events {
		ref := fanfare.EventRef{Day: of, Seq: seq}
		broadcast, err := s.Broadcast(ctx, ref)
		if fanfare.CodeOf(err) == fanfare.NotFound {
			lines.add("event", seq, "not_found")
			continue
		}
		if failed(err) {
			continue
		}
		lines.add("event", seq, "%s", asJSON(broadcast))
		posted, err := s.Posted(ctx, ref)
		if failed(err) {
			continue
		}
		lines.add("posted", seq, "%s", asJSON(posted))
		manifests, err := s.Manifests(ctx, ref)
		failed(err)
		lines.add("manifests", seq, "%v", manifests)
		for _, partition := range q.partitions {
			covering, err := s.ManifestOf(ctx, ref, partition)
			failed(err)
			if covering == nil {
				covering = &fanfare.Manifest{}
			}
			lines.add("manifest of", partition, "%x", uint64(covering.ID))
		}
		for i := range manifests {
			id := manifests[i].ID
			failed(s.Latest(ctx, of, id, q.from, q.to, func(position uint32, attempt uint16, state fanfare.State) {
				lines.add("latest", position, "%d %v", attempt, state)
			}))
			for state := fanfare.Failed; state <= fanfare.Suppressed; state++ {
				positions, err := s.Unsent(ctx, of, id, state, q.from, q.to, q.limit)
				failed(err)
				lines.add("unsent", state, "%v", positions)
			}
			failed(s.Attempts(ctx, of, id, q.from, q.to, func(e *fanfare.Entry) error {
				lines.add("attempt", e.Delivery, "%v", *e)
				return nil
			}))
		}
	}
	list, err := s.Broadcasts(ctx, of, q.service, q.after, q.before, q.limit)
	failed(err)
	var listed []fanfare.EventSeq
	for _, b := range list {
		ref, _ := fanfare.ParseEventRef(b.Event)
		listed = append(listed, ref.Seq)
	}
	lines.add("list", q.service, "%v", listed)
	first, last, err := s.EventRange(ctx, of)
	failed(err)
	lines.add("range", first, "%v", last)
	failed(s.Open(ctx, of, func(seq fanfare.EventSeq, messages int64, progress fanfare.Progress) {
		lines.add("open", seq, "%d %v", messages, progress)
	}))
	failed(s.Switches(ctx, of, func(sw fanfare.Switch, since time.Time) {
		lines.add("switch", switchKey{sw.Event.Seq, sw.Channel}, "%v", switchModel{sw.State, sw.Reason, since})
	}))
	failed(s.Controls(ctx, of, func(c fanfare.Control, since time.Time) {
		lines.add("control", saidKey{c.Event.Seq, c.Name}, "%v", saidModel{c.Value, since})
	}))
	next, err := s.NextDue(ctx, of)
	failed(err)
	lines.add("next due", next.Unix(), "")
	dues, err := s.DueBy(ctx, of, q.now, q.limit)
	failed(err)
	for _, due := range dues {
		lines.add("due", dueText(due), "")
	}
	batches, ids, err := s.Held(ctx, of)
	failed(err)
	for i, batch := range batches {
		lines.add("held", asJSON(batch), "")
		if i > 0 && ids[i] <= ids[i-1] {
			errs = append(errs, fmt.Errorf("the ids of what is held are %v", ids))
		}
	}
	parked, payloads, err := s.Parked(ctx, of)
	failed(err)
	for i, p := range parked {
		lines.add("parked", p.Reason, "%s %s %d %d %v %q", p.Kind, p.Event, p.Failures, p.Members, p.At.UTC(), string(payloads[i]))
	}
	for _, person := range q.people {
		found, err := s.History(ctx, of, person)
		failed(err)
		lines.add("history", person, "%v", found)
	}
	for _, id := range q.ids {
		found, err := s.FindEvent(ctx, of, "news", id)
		failed(err)
		lines.add("id", id, "%v", found)
	}
	for _, reference := range q.references {
		found, err := s.FindReference(ctx, of, "news", reference)
		failed(err)
		lines.add("reference", reference, "%v", found)
	}
	lag, err := s.HistoryLag(ctx, of)
	failed(err)
	lines.add("lag", lag, "")
	return lines, errors.Join(errs...)
}
