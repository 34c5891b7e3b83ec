//go:build crashsteps

package crash

import (
	"context"
	"errors"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/client"
)

// audiences gives each event those who subscribe to its topic; a message has
// those whom it named.
func (w *world) audiences() {
	of := map[string]Audience{story: w.readers.audience(), note: w.noted.audience()}
	for i := range w.events {
		e := &w.events[i]
		if e.Settled.IsZero() {
			e.Settled = time.Now()
		}
		if w.topics[i] != "" {
			e.Audience = of[w.topics[i]]
		}
	}
}

// judge compares all that arrived with all that was asked for.
func (w *world) judge() *Verdict {
	w.t.Helper()
	w.audiences()
	v, err := Judge(w.events, w.sink.arrivals(), w.sink.refuses)
	if err != nil {
		w.t.Fatal(err)
	}
	return v
}

// shown is how many findings of one kind a failure names.
const shown = 5

// check holds every promise against what happened, and returns how many messages
// may have been sent unrecorded. kills is how often the server was killed.
func (w *world) check(kills int) (allowed int) {
	w.t.Helper()
	w.accounts()
	v := w.judge()
	seen := w.sink.close()
	allowed = (kills*connections + int(seen.DroppedBeforeReply)) * max(1, w.recipients)
	w.t.Logf("%d kills, slowest start %v, %d changes of subscriptions (%d of them ends), %d duplicates of %d allowed (%d connections dropped before a reply, %d in a body, %d before DATA)",
		kills, w.server.slowest.Round(time.Millisecond), w.changes, w.ends, v.Duplicates, allowed, seen.DroppedBeforeReply, seen.DroppedInData, seen.DroppedBeforeData)
	w.t.Log(v)
	for what, found := range v.Broken() {
		w.t.Errorf("%s: %d, such as %q", what, len(found), found[:min(shown, len(found))])
	}
	if v.Duplicates > allowed {
		w.t.Errorf("%d duplicates, more than %d", v.Duplicates, allowed)
	}
	if v.Expected == 0 || v.Refused == 0 || seen.DroppedBeforeReply+seen.DroppedInData+seen.DroppedBeforeData == 0 {
		w.t.Errorf("nothing was tried: %v, %+v", v, seen)
	}
	return allowed
}

// accounts waits until each event is completed, and holds the product's account
// of it against what arrived.
func (w *world) accounts() {
	w.t.Helper()
	broadcasts := make([]fanfare.Broadcast, len(w.events))
	for i := range w.events {
		b, err := w.completed(w.events[i].ID)
		if err != nil {
			w.t.Fatal(err)
		}
		broadcasts[i] = b
	}
	reached := map[string]map[string]bool{}
	for _, a := range w.sink.arrivals() {
		if reached[a.Event] == nil {
			reached[a.Event] = map[string]bool{}
		}
		reached[a.Event][a.Recipient] = true
	}
	var wrong []string
	for i := range broadcasts {
		b := &broadcasts[i]
		deliveries, err := w.trace(b.Event)
		if err != nil {
			w.t.Fatal(err)
		}
		found, err := Reconcile(b, deliveries, reached[b.Event], w.sink.refuses)
		if err != nil {
			w.t.Fatal(err)
		}
		wrong = append(wrong, found...)
	}
	if len(wrong) > 0 {
		w.t.Errorf("the account does not agree with what arrived, %d times, such as %q", len(wrong), wrong[:min(shown, len(wrong))])
	}
}

// trace reads all deliveries of an event.
func (w *world) trace(id string) ([]fanfare.Delivery, error) {
	var all []fanfare.Delivery
	query := client.DeliveryQuery{Limit: 1000}
	for {
		var page client.DeliveryPage
		err := w.server.do(w.given, func(ctx context.Context, api *client.Client) (err error) {
			page, err = api.Deliveries(ctx, id, query)
			return err
		})
		if err != nil {
			return nil, err
		}
		all = append(all, page.Deliveries...)
		if page.Next == "" {
			return all, nil
		}
		if page.Next == query.Cursor {
			return nil, errors.New("the trace of " + id + " goes round in circles")
		}
		query.Cursor = page.Next
	}
}
