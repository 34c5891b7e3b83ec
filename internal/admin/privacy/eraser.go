package privacy

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
	"fanfare.dev/fanfare/internal/httpapi/wire"
	"fanfare.dev/fanfare/internal/mailbox"
	"fanfare.dev/fanfare/internal/people/registry"
	"fanfare.dev/fanfare/internal/pipeline/eventgroup"
	"fanfare.dev/fanfare/internal/store/deliveries"
	"fanfare.dev/fanfare/internal/store/retry"
)

// Claims hold the deliveries that are being sent, so that no other part of the process settles them.
type Claims interface {
	Take(refs []fanfare.DeliveryRef) (free []fanfare.DeliveryRef)
	Release(refs ...fanfare.DeliveryRef)
}

// Options are the dependencies of an Eraser.
type Options struct {
	Registry *registry.Registry
	Store    *deliveries.Store
	Bus      *bus.Bus
	Recorder interface {
		RecordAll(entries []fanfare.Entry) error
	}
	Mailboxes *mailbox.Store
	Submitted func(service, id string) (fanfare.EventRef, bool)                   // returns the event of a message that the owner of a mailbox has sent
	Cancel    func(ctx context.Context, scope fanfare.Scope, reason string) error // settles the open deliveries of a scope as cancelled
	Claims    Claims
	Drop      func(subscriber fanfare.RowID) // removes the messages to a subscriber from the queues of channels
	Clock     clock.Clock
	Logger    *slog.Logger
	Exclusive ctxlock.Lock // backups and moves hold it, too
	Retrying  ctxlock.Lock // held during a retry of parked work
	Accepting *Barrier     // direct messages that are being accepted
	Sends     Sends
	Others    []Records // of other packages
}

// Records are about people, whom they contain by address or id.
type Records interface {
	Erase(ctx context.Context, service string, names []string) error
	// Export visits the records. texts are the messages to the people, in JSON.
	Export(ctx context.Context, service string, names []string, texts [][]byte, visit func(*httpapi.PersonalLine) error) error
}

// Sends have lists with the rows of people; *sends.Sends has these methods.
type Sends interface {
	Erase(ctx context.Context, service string, places []fanfare.RowID, names []string) error
	Export(ctx context.Context, service string, places []fanfare.RowID, names []string, visit func(send string, row wire.SendRow) error) error
}

// An Eraser erases people. An erasure is durable when it begins. One goroutine does the work, for many people at a
// time; the next start continues what a crash interrupted. Each step can be repeated.
//
// The order ensures completeness: the registry ends the subscriptions and hides the person, so that no new data
// can be created; then the eraser waits for everything that is in progress; then it removes the person from the
// record of deliveries, from mailboxes and from events. Messages that the person has sent to others and that are still under way are cancelled; the mailbox
// is disabled before, so that it cannot send new ones. A mailbox is removed when no delivery to it is open any more, which could create it again. The rows of the registry are removed last, because they identify the
// person.
type Eraser struct {
	options Options

	mu      sync.Mutex
	waiting []*erasure
	wake    chan struct{}
	stopped chan struct{} // closed when Run has ended
}

// erasure is an erasure and the channel that its caller waits on.
type erasure struct {
	registry.Erasure
	deliveries int
	done       chan struct{} // closed when no data of the person is left
}

const (
	// pauseAfterError is the time that the eraser waits after an error.
	pauseAfterError = 5 * time.Second
	// maxTogether is the number of people who are erased together: the files are searched once for all of them.
	maxTogether = 100
	// claimPoll is the interval at which the eraser tries to claim a delivery that is being sent.
	claimPoll = 20 * time.Millisecond
)

// NewEraser returns an Eraser; Run starts it.
func NewEraser(o Options) *Eraser {
	return &Eraser{options: o, wake: make(chan struct{}, 1), stopped: make(chan struct{})}
}

// Erase erases a subscriber, and returns when no data of it is left. If ctx ends earlier, the erasure continues.
func (e *Eraser) Erase(ctx context.Context, service, id string, suppress bool) (httpapi.Erased, error) {
	begun, err := e.options.Registry.BeginErasure(ctx, service, id, suppress)
	if err != nil {
		return httpapi.Erased{}, err
	}
	one := e.add(begun)
	select {
	case <-one.done:
		return httpapi.Erased{Subscriptions: one.Ended, Deliveries: one.deliveries}, nil
	case <-e.stopped:
		return httpapi.Erased{}, &fanfare.Error{Code: fanfare.Unavailable, Message: "the server is stopping", Hint: "the erasure continues after the next start"}
	case <-ctx.Done():
		return httpapi.Erased{}, ctx.Err()
	}
}

func (e *Eraser) add(one registry.Erasure) *erasure {
	added := &erasure{Erasure: one, done: make(chan struct{})}
	e.mu.Lock()
	e.waiting = append(e.waiting, added)
	e.mu.Unlock()
	select {
	case e.wake <- struct{}{}:
	default:
	}
	return added
}

// Run erases until ctx ends, beginning with the unfinished erasures of the previous run of the server.
func (e *Eraser) Run(ctx context.Context) {
	defer close(e.stopped)
	for _, one := range e.options.Registry.Erasures() {
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
				e.options.Logger.Log(ctx, retry.LogLevel(err), "cannot erase a person; retrying", "error", err)
				select {
				case <-time.After(pauseAfterError):
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

func (e *Eraser) take() []*erasure {
	e.mu.Lock()
	defer e.mu.Unlock()
	n := min(len(e.waiting), maxTogether)
	some := e.waiting[:n:n]
	e.waiting = e.waiting[n:]
	return some
}

// erase does all remaining work for some people. It waits for a running backup, which would otherwise contain the
// days from before the erasure and the people from after it, so that a restored server would not know whom to erase.
func (e *Eraser) erase(ctx context.Context, some []*erasure) error {
	if err := e.options.Exclusive.Lock(ctx); err != nil {
		return err
	}
	defer e.options.Exclusive.Unlock()
	if err := e.disableMailboxes(ctx, some); err != nil {
		return err
	}
	for _, one := range some {
		if err := e.options.Sends.Erase(ctx, one.Service, one.Places, one.Names); err != nil {
			return err
		}
		for _, records := range e.options.Others {
			if err := records.Erase(ctx, one.Service, one.Names); err != nil {
				return err
			}
		}
	}
	if err := e.options.Accepting.Wait(ctx); err != nil { // messages that looked up the people earlier
		return err
	}
	if err := e.options.Retrying.Lock(ctx); err != nil { // a retried event would be matched after the wait
		return err
	}
	defer e.options.Retrying.Unlock()
	if err := e.options.Bus.AwaitMatched(ctx); err != nil {
		return err
	}
	days, err := e.options.Store.Days(ctx)
	if err != nil {
		return err
	}
	failpoint.Hit("before-erase")
	if err := e.cancelSubmissions(ctx, some); err != nil {
		return err
	}
	touched := map[fanfare.Day][][]byte{} // changed days, with the names that their files may still contain
	for _, one := range some {
		one.deliveries = 0
		for _, day := range days {
			n, err := e.eraseDay(ctx, day, one)
			if removed(err) {
				continue
			}
			if err != nil {
				return err
			}
			if n > 0 {
				touched[day] = append(touched[day], one.names()...)
			}
			one.deliveries += n
		}
	}
	if err := e.eraseEvents(ctx, days, some, touched); err != nil {
		return err
	}
	if err := e.eraseMailboxes(ctx, some); err != nil {
		return err
	}
	failpoint.Hit("before-scrub")
	for day, names := range touched {
		if err := e.options.Store.Scrub(ctx, day, names); err != nil && !removed(err) {
			return err
		}
	}
	failpoint.Hit("before-erase-people")
	all := make([]registry.Erasure, len(some))
	for i := range some {
		all[i] = some[i].Erasure
	}
	return e.options.Registry.FinishErasures(ctx, all)
}

// eraseMailboxes removes the mailboxes of people. The names are overwritten even if nobody has a mailbox, because a crash may have come between the
// removal and this.
func (e *Eraser) eraseMailboxes(ctx context.Context, some []*erasure) error {
	var names [][]byte
	for _, one := range some {
		for _, place := range one.Places {
			aliases, err := e.options.Mailboxes.Aliases(ctx, place)
			if err != nil {
				return err
			}
			for i := range aliases {
				names = append(names, []byte(aliases[i].Address))
			}
			if err := e.options.Mailboxes.Remove(ctx, place); err != nil {
				return err
			}
		}
		names = append(names, one.names()...)
	}
	return e.options.Mailboxes.Scrub(ctx, names)
}

// removed reports whether a day was removed since it was listed.
func removed(err error) bool { return fanfare.CodeOf(err) == fanfare.NotFound }

func (o *erasure) names() [][]byte {
	names := make([][]byte, len(o.Names))
	for i := range o.Names {
		names[i] = []byte(o.Names[i])
	}
	return names
}

// eraseDay removes a person from the record of a day, and returns how many deliveries it found.
func (e *Eraser) eraseDay(ctx context.Context, day fanfare.Day, one *erasure) (found int, err error) {
	for _, place := range one.Places {
		events, err := e.options.Store.History(ctx, day, place)
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

// eraseDelivery settles the open deliveries of an event to a subscriber, and removes the person from their record.
func (e *Eraser) eraseDelivery(ctx context.Context, ref fanfare.EventRef, subscriber fanfare.RowID) (int, error) {
	manifest, err := e.options.Store.ManifestOf(ctx, ref, subscriber.Partition())
	if err != nil || manifest == nil {
		return 0, err
	}
	var refs []fanfare.DeliveryRef
	for _, p := range manifest.PositionsOf(subscriber) {
		refs = append(refs, fanfare.DeliveryRef{Day: ref.Day, Manifest: manifest.ID, Position: p})
	}
	for _, one := range refs {
		if err := e.settle(ctx, one, subscriber); err != nil {
			return 0, err
		}
	}
	return len(refs), e.options.Store.EraseAttempts(ctx, ref.Day, refs)
}

// settle settles an open delivery. It waits for one that is being sent, and drops one that is queued.
func (e *Eraser) settle(ctx context.Context, ref fanfare.DeliveryRef, subscriber fanfare.RowID) error {
	for len(e.options.Claims.Take([]fanfare.DeliveryRef{ref})) == 0 {
		e.options.Drop(subscriber)
		select {
		case <-time.After(claimPoll):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	defer e.options.Claims.Release(ref)
	attempts, settled := uint16(0), false
	err := e.options.Store.Latest(ctx, ref.Day, ref.Manifest, ref.Position, ref.Position+1, func(_ uint32, attempt uint16, state fanfare.State) {
		attempts, settled = attempt, state.Settled()
	})
	if err != nil || settled {
		return err
	}
	return e.options.Recorder.RecordAll([]fanfare.Entry{{Delivery: ref, Attempt: attempts + 1, State: fanfare.Suppressed, At: e.options.Clock.Now()}})
}

// eraseEvents removes the people from direct messages: from accepted ones, parked ones and those in EVENTS.
func (e *Eraser) eraseEvents(ctx context.Context, days []fanfare.Day, some []*erasure, touched map[fanfare.Day][][]byte) error {
	var places []fanfare.RowID
	var names [][]byte
	for _, one := range some {
		places = append(places, one.Places...)
		names = append(names, one.names()...)
	}
	rewritten := map[uint64][]byte{}
	err := e.options.Bus.ReplayEvents(ctx, time.Unix(0, 0), func(seq uint64, _ time.Time, group []byte) error {
		text, changed, err := eraseFrom(group, seq, places, names)
		if changed {
			rewritten[seq] = text
		}
		return err
	})
	if err != nil {
		return err
	}
	for seq, group := range rewritten {
		if err := e.options.Bus.RewriteGroup(ctx, seq, group); err != nil {
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
		if err != nil && !removed(err) {
			return err
		}
		if changed {
			touched[day] = append(touched[day], names...)
		}
	}
	return nil
}

// erasePosted removes the people from the direct messages of a day.
func (e *Eraser) erasePosted(ctx context.Context, day fanfare.Day, places []fanfare.RowID, names [][]byte) (changed bool, err error) {
	for _, place := range places {
		events, err := e.options.Store.History(ctx, day, place)
		if err != nil {
			return changed, err
		}
		for _, seq := range events {
			posted, err := e.options.Store.Posted(ctx, fanfare.EventRef{Day: day, Seq: seq})
			if err != nil {
				return changed, err
			}
			if !eraseIn(posted, places, names) {
				continue
			}
			changed = true
			if err := e.options.Store.ReplacePosted(ctx, posted); err != nil {
				return changed, err
			}
		}
	}
	return changed, nil
}

func (e *Eraser) eraseParked(ctx context.Context, day fanfare.Day, places []fanfare.RowID, names [][]byte) (changed bool, err error) {
	parked, payloads, err := e.options.Store.Parked(ctx, day)
	if err != nil {
		return false, err
	}
	for i := range parked {
		if parked[i].Kind != fanfare.ParkedEvents {
			continue
		}
		text, found, err := eraseFrom(payloads[i], 0, places, names)
		if err != nil || !found {
			continue // an unreadable group is parked because it is unreadable
		}
		changed = true
		if err := e.options.Store.ReplaceParked(ctx, parked[i].ID, text); err != nil {
			return changed, err
		}
	}
	return changed, nil
}

// directMember is the JSON member that every group with a direct message contains.
var directMember = []byte(`"direct":`)

// eraseFrom rewrites a group of events without the erased people. Events keep their sequence numbers.
func eraseFrom(group []byte, seq uint64, erased []fanfare.RowID, names [][]byte) (text []byte, changed bool, err error) {
	if !bytes.Contains(group, directMember) {
		return nil, false, nil
	}
	events, err := eventgroup.Decode(group, seq)
	if err != nil {
		return nil, false, fmt.Errorf("group %d: %w", seq, err)
	}
	for _, posted := range events {
		changed = eraseIn(posted, erased, names) || changed
		one, err := eventgroup.Encode(posted)
		if err != nil {
			return nil, false, err
		}
		text = append(text, one...)
	}
	return text, changed, nil
}

// eraseIn removes erased people from a direct message. It replaces an id that is an Idempotency-Key and contains a name
// of theirs: after a restart, a request with that key creates a new message.
func eraseIn(posted *fanfare.AcceptedEvent, erased []fanfare.RowID, names [][]byte) bool {
	if !posted.EraseRecipients(erased) {
		return false
	}
	id := bytes.ToLower([]byte(posted.Event.ID))
	if slices.ContainsFunc(names, func(name []byte) bool { return bytes.Contains(id, name) }) {
		posted.Event.ID = rand.Text()
	}
	return true
}
