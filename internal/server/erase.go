package server

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/bus"
	"fanfare.dev/fanfare/internal/clock"
	"fanfare.dev/fanfare/internal/ctxlock"
	"fanfare.dev/fanfare/internal/failpoint"
	"fanfare.dev/fanfare/internal/httpapi"
	"fanfare.dev/fanfare/internal/pipeline/deliver/channels"
	"fanfare.dev/fanfare/internal/pipeline/ingest"
	"fanfare.dev/fanfare/internal/pipeline/record"
	"fanfare.dev/fanfare/internal/registry"
	"fanfare.dev/fanfare/internal/store/deliveries"
	"fanfare.dev/fanfare/internal/store/retry"
)

// eraser forgets people. An erasure is durable from its begin, one goroutine
// does what is left to do, many at a time, and what a crash has left is done by
// the next start. Each step can be done again.
//
// The order is what makes it whole: the registry ends the subscriptions and
// hides the person, so that nothing new can come about; then everything is
// awaited that was under way; then the record of sends and the events are
// emptied of the person; the registry's own rows go last, because they say whom
// the rest is about.
type eraser struct {
	registry *registry.Registry
	store    *deliveries.Store
	bus      *bus.Bus
	channels *channels.Channels
	recorder *record.Recorder
	claims   *claims
	clock    clock.Clock
	logger   *slog.Logger
	parking  *parking
	copying  ctxlock.Lock // of a backup too
	keeping  *passage     // of messages

	mu      sync.Mutex
	waiting []*erasing
	wake    chan struct{}
	stopped chan struct{} // closed when run has ended
}

// erasing is an erasure and who waits for it.
type erasing struct {
	registry.Erasure
	deliveries int
	done       chan struct{} // closed when nothing is left of the person
}

const (
	// erasePause is how long erasing rests after an error.
	erasePause = 5 * time.Second
	// eraseAtOnce is how many people are forgotten together: the files are
	// searched once for all of them.
	eraseAtOnce = 100
	// claimPause is how long a delivery that is under way is left alone.
	claimPause = 20 * time.Millisecond
)

func newEraser(r *reports, copying ctxlock.Lock, keeping *passage) *eraser {
	return &eraser{copying: copying, keeping: keeping, parking: r.parking, registry: r.registry, store: r.store, bus: r.bus, channels: r.channels, recorder: r.recorder, claims: r.parking.claims,
		clock: r.parking.clock, logger: r.logger, wake: make(chan struct{}, 1), stopped: make(chan struct{})}
}

// Erase forgets a subscriber, and returns when nothing of it is left. When ctx
// ends earlier, the erasure goes on.
func (e *eraser) Erase(ctx context.Context, service, id string, suppress bool) (httpapi.Erased, error) {
	begun, err := e.registry.BeginErasure(ctx, service, id, suppress)
	if err != nil {
		return httpapi.Erased{}, err
	}
	one := e.add(begun)
	select {
	case <-one.done:
		return httpapi.Erased{Subscriptions: one.Ended, Deliveries: one.deliveries}, nil
	case <-e.stopped:
		return httpapi.Erased{}, &fanfare.Error{Code: fanfare.Unavailable, Message: "the server is stopping", Hint: "the erasure goes on with its next start"}
	case <-ctx.Done():
		return httpapi.Erased{}, ctx.Err()
	}
}

func (e *eraser) add(one registry.Erasure) *erasing {
	added := &erasing{Erasure: one, done: make(chan struct{})}
	e.mu.Lock()
	e.waiting = append(e.waiting, added)
	e.mu.Unlock()
	select {
	case e.wake <- struct{}{}:
	default:
	}
	return added
}

// run works until ctx ends, beginning with what an earlier run left.
func (e *eraser) run(ctx context.Context) {
	defer close(e.stopped)
	for _, one := range e.registry.Erasures() {
		e.add(one)
	}
	for {
		select {
		case <-e.wake:
		case <-ctx.Done():
			return
		}
		for some := e.take(); len(some) > 0; some = e.take() {
			for err := e.erase(ctx, some); err != nil; err = e.erase(ctx, some) {
				if ctx.Err() != nil {
					return
				}
				e.logger.Log(ctx, retry.LogLevel(err), "somebody could not be erased, it is tried again", "error", err)
				select {
				case <-time.After(erasePause):
				case <-ctx.Done():
					return
				}
			}
			for _, one := range some {
				close(one.done)
			}
		}
	}
}

func (e *eraser) take() []*erasing {
	e.mu.Lock()
	defer e.mu.Unlock()
	n := min(len(e.waiting), eraseAtOnce)
	some := e.waiting[:n:n]
	e.waiting = e.waiting[n:]
	return some
}

// erase does all that is left to do for some people. A backup that is being
// taken is awaited: it would have the days from before and the people from
// after, and nobody would know whom to erase where it is restored.
func (e *eraser) erase(ctx context.Context, some []*erasing) error {
	if err := e.copying.Lock(ctx); err != nil {
		return err
	}
	defer e.copying.Unlock()
	if err := e.keeping.await(ctx); err != nil { // of messages that found the people before
		return err
	}
	if err := e.parking.still.Lock(ctx); err != nil { // what is tried again would come unmatched behind the ones awaited
		return err
	}
	defer e.parking.still.Unlock()
	if err := e.bus.AwaitMatched(ctx); err != nil {
		return err
	}
	days, err := e.store.Days(ctx)
	if err != nil {
		return err
	}
	failpoint.Hit("before-erase")
	touched := map[fanfare.Day][][]byte{} // with the names that may be left there
	for _, one := range some {
		one.deliveries = 0
		for _, day := range days {
			n, err := e.eraseDay(ctx, day, one)
			if gone(err) {
				continue
			}
			if err != nil {
				return err
			}
			if n > 0 {
				touched[day] = append(touched[day], one.needles()...)
			}
			one.deliveries += n
		}
	}
	if err := e.eraseEvents(ctx, days, some, touched); err != nil {
		return err
	}
	failpoint.Hit("before-scrub")
	for day, names := range touched {
		if err := e.store.Scrub(ctx, day, names); err != nil && !gone(err) {
			return err
		}
	}
	failpoint.Hit("before-erase-people")
	all := make([]registry.Erasure, len(some))
	for i := range some {
		all[i] = some[i].Erasure
	}
	return e.registry.FinishErasures(ctx, all)
}

// gone reports whether a day was removed since it was listed.
func gone(err error) bool { return err != nil && fanfare.CodeOf(err) == fanfare.NotFound }

func (o *erasing) needles() [][]byte {
	names := make([][]byte, len(o.Names))
	for i := range o.Names {
		names[i] = []byte(o.Names[i])
	}
	return names
}

// eraseDay empties the record of one day of a person, and returns how many
// deliveries it found.
func (e *eraser) eraseDay(ctx context.Context, day fanfare.Day, one *erasing) (found int, err error) {
	for _, place := range one.Places {
		events, err := e.store.History(ctx, day, place)
		if err != nil {
			return found, err
		}
		for _, seq := range events {
			n, err := e.eraseDelivery(ctx, fanfare.EventRef{Day: day, Seq: seq}, place)
			if err != nil {
				return found, err
			}
			found += n
		}
	}
	return found, nil
}

// eraseDelivery settles what an event has open for one place, and empties what
// is recorded of it.
func (e *eraser) eraseDelivery(ctx context.Context, ref fanfare.EventRef, place fanfare.RowID) (int, error) {
	manifest, err := e.store.ManifestOf(ctx, ref, place.Partition())
	if err != nil || manifest == nil {
		return 0, err
	}
	var refs []fanfare.DeliveryRef
	for _, p := range manifest.PositionsOf(place) {
		refs = append(refs, fanfare.DeliveryRef{Day: ref.Day, Manifest: manifest.ID, Position: p})
	}
	for _, one := range refs {
		if err := e.settle(ctx, one, place); err != nil {
			return 0, err
		}
	}
	return len(refs), e.store.Forget(ctx, ref.Day, refs)
}

// settle ends a delivery that is open. One that is under way is waited for: it
// is on the wire, or in a queue, from which it is dropped.
func (e *eraser) settle(ctx context.Context, ref fanfare.DeliveryRef, place fanfare.RowID) error {
	for len(e.claims.take([]fanfare.DeliveryRef{ref})) == 0 {
		e.channels.Drop(place)
		select {
		case <-time.After(claimPause):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	defer e.claims.release(ref)
	tries, over := uint16(0), false
	err := e.store.Latest(ctx, ref.Day, ref.Manifest, ref.Position, ref.Position+1, func(_ uint32, attempt uint16, state fanfare.State) {
		tries, over = attempt, state.Settled()
	})
	if err != nil || over {
		return err
	}
	return e.recorder.RecordAll([]fanfare.Entry{{Delivery: ref, Attempt: tries + 1, State: fanfare.Suppressed, At: e.clock.Now()}})
}

// eraseEvents empties the messages that were sent to the people: as they were
// accepted, as they are parked, and as they lie in EVENTS.
func (e *eraser) eraseEvents(ctx context.Context, days []fanfare.Day, some []*erasing, touched map[fanfare.Day][][]byte) error {
	var places []fanfare.RowID
	var names [][]byte
	for _, one := range some {
		places = append(places, one.Places...)
		names = append(names, one.needles()...)
	}
	rewritten := map[uint64][]byte{}
	err := e.bus.ReplayEvents(ctx, time.Unix(0, 0), func(seq uint64, _ time.Time, group []byte) error {
		text, changed, err := forgetIn(group, seq, places, names)
		if changed {
			rewritten[seq] = text
		}
		return err
	})
	if err != nil {
		return err
	}
	for seq, group := range rewritten {
		if err := e.bus.RewriteGroup(ctx, seq, group); err != nil {
			return err
		}
	}
	for _, day := range days {
		changed, err := e.eraseParked(ctx, day, places, names)
		if err == nil {
			var posted bool
			posted, err = e.erasePosted(ctx, day, places, names)
			changed = changed || posted
		}
		if err != nil && !gone(err) {
			return err
		}
		if changed {
			touched[day] = append(touched[day], names...)
		}
	}
	return nil
}

// erasePosted empties the messages of a day that were sent to the people.
func (e *eraser) erasePosted(ctx context.Context, day fanfare.Day, places []fanfare.RowID, names [][]byte) (changed bool, err error) {
	for _, place := range places {
		events, err := e.store.History(ctx, day, place)
		if err != nil {
			return changed, err
		}
		for _, seq := range events {
			posted, err := e.store.Posted(ctx, fanfare.EventRef{Day: day, Seq: seq})
			if err != nil {
				return changed, err
			}
			if !forget(posted, places, names) {
				continue
			}
			changed = true
			if err := e.store.ReplacePosted(ctx, posted); err != nil {
				return changed, err
			}
		}
	}
	return changed, nil
}

func (e *eraser) eraseParked(ctx context.Context, day fanfare.Day, places []fanfare.RowID, names [][]byte) (changed bool, err error) {
	parked, payloads, err := e.store.Parked(ctx, day)
	if err != nil {
		return false, err
	}
	for i := range parked {
		if parked[i].Kind != fanfare.ParkedEvents {
			continue
		}
		text, found, err := forgetIn(payloads[i], 0, places, names)
		if err != nil || !found {
			continue // a group that cannot be read is parked for that
		}
		changed = true
		if err := e.store.ReplaceParked(ctx, parked[i].ID, text); err != nil {
			return changed, err
		}
	}
	return changed, nil
}

// directMember is in every group that has a message in it.
var directMember = []byte(`"direct":`)

// forgetIn rewrites a group of events without what it says of erased people.
// Events keep the sequences that they have.
func forgetIn(group []byte, seq uint64, erased []fanfare.RowID, names [][]byte) (text []byte, changed bool, err error) {
	if !bytes.Contains(group, directMember) {
		return nil, false, nil
	}
	events, err := ingest.Decode(group, seq)
	if err != nil {
		return nil, false, fmt.Errorf("group %d: %w", seq, err)
	}
	for _, posted := range events {
		changed = forget(posted, erased, names) || changed
		one, err := ingest.Encode(posted)
		if err != nil {
			return nil, false, err
		}
		text = append(text, one...)
	}
	return text, changed, nil
}

// forget empties what a message says of erased people, and its id where that is
// an Idempotency-Key that names one of them: after a restart, a repeat with that
// key is a new message.
func forget(posted *fanfare.AcceptedEvent, erased []fanfare.RowID, names [][]byte) bool {
	if !posted.Forget(erased) {
		return false
	}
	id := bytes.ToLower([]byte(posted.Event.ID))
	if slices.ContainsFunc(names, func(name []byte) bool { return bytes.Contains(id, name) }) {
		posted.Event.ID = rand.Text()
	}
	return true
}
