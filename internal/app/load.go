package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/deliver"
	"fanfare.dev/fanfare/internal/dkim"
	"fanfare.dev/fanfare/internal/format"
	"fanfare.dev/fanfare/internal/kit"
	"fanfare.dev/fanfare/internal/mx"
	"fanfare.dev/fanfare/internal/record"
	"fanfare.dev/fanfare/internal/registry"
	"fanfare.dev/fanfare/internal/store/deliveries"
)

// loader turns a batch, which is a hint, into messages: it reads what is
// settled already, then people and subscriptions in bulk, and writes the
// messages. Each goroutine has its own.
type loader struct {
	store    *deliveries.Store
	registry *registry.Registry
	recorder *record.Recorder
	switches *switches
	claims   *claims
	signer   *format.Signer // nil without a public URL
	returns  *format.Signer // of return addresses
	domains  []string       // of which mail comes in here
	sites    *mx.Sites
	clock    kit.Clock

	templates  *templates
	enclosures *enclosures
	memory     *memory

	keys    *keyring
	signing dkim.Signing
	signers []*dkim.Key // of the last batch

	manifests cache[manifestKey, *fanfare.Manifest]
	mailings  cache[mailingKey, *mailing]
}

type manifestKey struct {
	day fanfare.Day
	id  fanfare.ManifestID
}

// loaded is what came of a batch.
type loaded struct {
	jobs  []deliver.Job
	held  []fanfare.Slice       // paused: to be kept until they are resumed
	later []fanfare.Due         // in their quiet hours: to be kept until these are over
	mine  []fanfare.DeliveryRef // claimed
	busy  int                   // members in other hands: the batch has to come again
	left  int                   // members with files for which there was no room: the batch comes again when the others are sent

	enclosed int // bytes of files that letters have for themselves

	slabs []*slab // the memory of the letters; goes back when the jobs are done
}

// pending is a member on its way to a job.
type pending struct {
	ref     fanfare.DeliveryRef
	attempt uint16
	section *fanfare.Section
	member  fanfare.Member
}

// load makes the jobs of a batch. Its claims end with the jobs; after an error
// nothing is claimed.
func (l *loader) load(ctx context.Context, batch *fanfare.Batch, channel *registry.Channel) (out *loaded, err error) {
	out = &loaded{}
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("loading panicked: %v", p)
		}
		if err != nil {
			l.claims.release(out.mine...)
		}
	}()
	var open, cancelled []claimed
	for i := range batch.Slices {
		slice := &batch.Slices[i]
		event := fanfare.EventRef{Day: batch.Day, Seq: slice.Manifest.Event()}
		switch decision, why := l.switches.now.Load().decide(event, channel); decision {
		case deliver.Hold:
			out.held = append(out.held, *slice)
		case deliver.Cancel:
			cancelled = append(cancelled, l.claim(batch.Day, slice, why, out))
		default:
			open = append(open, l.claim(batch.Day, slice, "", out))
		}
	}
	if err := l.cancel(ctx, batch.Day, cancelled); err != nil {
		return out, err
	}
	members, err := l.unsettled(ctx, batch.Day, open)
	if err != nil {
		return out, err
	}
	if len(members) == 0 {
		return out, nil
	}
	people, err := l.read(ctx, members)
	if err != nil {
		return out, err
	}
	quiet := &quietTimes{topics: l.topicsOf, channel: channel, lane: batch.Lane, now: l.clock.Now()}
	if err := l.write(ctx, channel, members, people, quiet, out); err != nil {
		return out, err
	}
	if channel.Destinations.By == registry.ByMX && batch.Lane != fanfare.Urgent {
		awaitSites(ctx, l.sites, out.jobs)
	}
	return out, l.recorder.Postpone(batch.Day, out.later)
}

// claimed are the members of a slice that are in nobody else's hands.
type claimed struct {
	slice *fanfare.Slice
	refs  []fanfare.DeliveryRef
	why   string // they are cancelled
}

// claim takes the members of a slice that are free.
func (l *loader) claim(day fanfare.Day, slice *fanfare.Slice, why string, out *loaded) claimed {
	refs := refsOf(day, slice)
	wanted := len(refs)
	refs = l.claims.take(refs)
	out.mine = append(out.mine, refs...)
	out.busy += wanted - len(refs)
	return claimed{slice, refs, why}
}

// unsettled returns the members that are still to be attempted, all of one day.
func (l *loader) unsettled(ctx context.Context, day fanfare.Day, all []claimed) (members []pending, err error) {
	if len(all) == 0 {
		return nil, nil
	}
	err = l.store.Moment(ctx, day, func(moment *deliveries.Moment) error {
		open, err := untried(moment, all)
		if err != nil {
			return err
		}
		manifests, err := l.manifestsOf(moment, day, open)
		if err != nil {
			return err
		}
		members = nil
		for i := range open {
			slice := open[i].slice
			for _, ref := range open[i].refs {
				section, member, ok := manifests[slice.Manifest].At(ref.Position)
				if !ok {
					return fmt.Errorf("manifest %x has no position %d", uint64(slice.Manifest), ref.Position)
				}
				members = append(members, pending{ref, slice.Attempt, section, member})
			}
		}
		return nil
	})
	return members, err
}

// manifestsOf returns the manifests of some members; those that are not at hand
// are read in one go.
func (l *loader) manifestsOf(moment *deliveries.Moment, day fanfare.Day, all []claimed) (map[fanfare.ManifestID]*fanfare.Manifest, error) {
	manifests := make(map[fanfare.ManifestID]*fanfare.Manifest, len(all))
	var missing []fanfare.ManifestID
	for i := range all {
		id := all[i].slice.Manifest
		if _, asked := manifests[id]; asked || len(all[i].refs) == 0 {
			continue
		}
		known := l.manifests.entries[manifestKey{day, id}]
		if manifests[id] = known; known == nil {
			missing = append(missing, id)
		}
	}
	err := moment.Manifests(missing, func(m *fanfare.Manifest) {
		manifests[m.ID] = m
		l.manifests.keep(manifestKey{day, m.ID}, m)
	})
	return manifests, err
}

// cancel settles what is open of cancelled slices.
func (l *loader) cancel(ctx context.Context, day fanfare.Day, all []claimed) error {
	for len(all) > 0 {
		same := 1
		for same < len(all) && all[same].why == all[0].why {
			same++
		}
		members, err := l.unsettled(ctx, day, all[:same])
		if err != nil {
			return err
		}
		if err := l.settle(members, fanfare.Cancelled, all[0].why); err != nil {
			return err
		}
		all = all[same:]
	}
	return nil
}

// untried keeps of members, which are claimed, those that the attempt of their
// slice is still to be made for. The others are over, or this try was made and a
// retry of its own is due.
func untried(moment *deliveries.Moment, all []claimed) ([]claimed, error) {
	type newest struct {
		attempt uint16
		over    bool
	}
	var spans []deliveries.Span
	var open []claimed
	for _, c := range all {
		if n := len(c.refs); n > 0 {
			spans = append(spans, deliveries.Span{Manifest: c.slice.Manifest, From: c.refs[0].Position, To: c.refs[n-1].Position + 1})
			open = append(open, c)
		}
	}
	tried := make([]map[uint32]newest, len(open))
	err := moment.Latest(spans, func(span int, position uint32, attempt uint16, state fanfare.State) {
		if tried[span] == nil {
			tried[span] = map[uint32]newest{}
		}
		tried[span][position] = newest{attempt, state.Settled()}
	})
	if err != nil {
		return nil, err
	}
	for i := range open {
		c := &open[i]
		c.refs = slices.DeleteFunc(slices.Clone(c.refs), func(ref fanfare.DeliveryRef) bool {
			last := tried[i][ref.Position]
			return last.over || last.attempt != c.slice.Attempt-1
		})
	}
	return open, nil
}

// refsOf names the deliveries of a slice, ascending.
func refsOf(day fanfare.Day, slice *fanfare.Slice) []fanfare.DeliveryRef {
	refs := make([]fanfare.DeliveryRef, 0, slice.Len())
	for _, p := range slice.Positions {
		refs = append(refs, fanfare.DeliveryRef{Day: day, Manifest: slice.Manifest, Position: p})
	}
	if slice.Positions == nil {
		for p := slice.From; p < slice.To; p++ {
			refs = append(refs, fanfare.DeliveryRef{Day: day, Manifest: slice.Manifest, Position: p})
		}
	}
	return refs
}

// cancelAll settles what is open of a batch whose channel is gone.
func (l *loader) cancelAll(ctx context.Context, batch *fanfare.Batch) error {
	var out loaded
	defer func() { l.claims.release(out.mine...) }()
	all := make([]claimed, len(batch.Slices))
	for i := range batch.Slices {
		all[i] = l.claim(batch.Day, &batch.Slices[i], channelGone, &out)
	}
	if err := l.cancel(ctx, batch.Day, all); err != nil {
		return err
	}
	if out.busy > 0 {
		return errBusy
	}
	return nil
}

// errBusy says that some of a batch is in other hands.
var errBusy = errors.New("some deliveries are in another batch that is under way")

// settle records one state for members that get no message.
func (l *loader) settle(members []pending, state fanfare.State, why string) error {
	entries := make([]fanfare.Entry, len(members))
	for i := range members {
		entries[i] = l.entry(&members[i], state, why)
	}
	return l.recorder.RecordAll(entries)
}

func (l *loader) entry(m *pending, state fanfare.State, why string) fanfare.Entry {
	return fanfare.Entry{Delivery: m.ref, Attempt: m.attempt, State: state, Text: why, At: l.clock.Now()}
}

// failuresAtOnce is how many messages may fail before the gate is asked again:
// a broadcast whose first messages all fail pauses itself.
const failuresAtOnce = 100

// write makes the messages. Members whose message cannot be made, or is not
// wanted any more, are settled on the way.
func (l *loader) write(ctx context.Context, channel *registry.Channel, members []pending, people *people, quiet *quietTimes, out *loaded) (err error) {
	l.signFrom(l.clock.Now())
	defer func() { err = errors.Join(err, l.sign()) }() // what is kept for others is signed, too
	out.jobs = make([]deliver.Job, 0, len(members))
	var page []byte
	var settled []fanfare.Entry
	events := ahead{store: l.store}
	for i := range members {
		m := &members[i]
		if len(settled) >= failuresAtOnce {
			if err := l.recorder.RecordAll(settled); err != nil {
				return err
			}
			settled = settled[:0]
		}
		event := eventOf(m)
		if decision, _ := l.switches.now.Load().decide(event, channel); decision != deliver.Go {
			out.held = append(out.held, fanfare.Slice{Manifest: m.ref.Manifest, From: m.ref.Position, To: m.ref.Position + 1, Attempt: m.attempt})
			continue
		}
		mailing, err := l.mailings.get(mailingKey{event, m.section.Template}, func(k mailingKey) (*mailing, error) {
			posted, err := events.posted(ctx, members[i:])
			if err != nil {
				return nil, err
			}
			return l.mailing(ctx, posted, k, channel)
		})
		if err != nil {
			return err
		}
		if mailing.items != nil {
			if err := mailing.items.ahead(ctx, members[i:]); err != nil {
				return err
			}
		}
		if out.enclosed >= maxEnclosedOfBatch && mailing.filed > 0 {
			out.left += len(members) - i
			break
		}
		out.enclosed, mailing.filed = out.enclosed+mailing.filed, 0
		expires := expiry(mailing, channel)
		recipient := l.recipient(m, mailing, people)
		switch {
		case recipient == nil:
			settled = append(settled, l.entry(m, fanfare.Suppressed, unwanted(mailing)))
			continue
		case !expires.IsZero() && l.clock.Now().After(expires):
			settled = append(settled, l.entry(m, fanfare.Expired, "not sent before "+expires.Format(time.RFC3339)))
			continue
		case mailing.err != nil:
			settled = append(settled, l.entry(m, fanfare.Failed, mailing.err.Error()))
			continue
		}
		var seen uint64
		if why := l.registry.Suppressing(channel, recipient.Address, &seen); why != "" && !welcome(mailing.asked, why) {
			settled = append(settled, l.entry(m, fanfare.Suppressed, suppressedFor(why)))
			continue
		}
		hush := quiet.of(mailing, recipient.TimeZone, m.member.Subscriber, expires)
		if hush.At(l.clock.Now()) {
			out.later = append(out.later, fanfare.Due{
				At: wholeSecond(hush.Until), Channel: channel.Number, Lane: quiet.lane,
				Slice: fanfare.Slice{Manifest: m.ref.Manifest, Positions: []uint32{m.ref.Position}, Attempt: m.attempt},
				Why:   hush.Why,
			})
			continue
		}
		if cap(page)-len(page) < slabReserve {
			page = out.page(l.memory)
		}
		letter, longer, err := mailing.writer.Write(page, recipient)
		if err != nil {
			settled = append(settled, l.entry(m, fanfare.Failed, err.Error()))
			continue
		}
		page = longer
		letter.Delivery = m.ref
		out.jobs = append(out.jobs, deliver.Job{
			Letter: letter, Subscriber: m.member.Subscriber, Subscriptions: m.member.Subscriptions,
			Destination: destination(channel, letter.To), Attempt: m.attempt, Expires: expires, Quiet: hush, Seen: seen, Asked: mailing.asked,
		})
		if mailing.items != nil {
			job := &out.jobs[len(out.jobs)-1]
			job.Subscriptions, job.OfEach = placesOf(recipient.Subscriptions), true
		}
	}
	l.mailings.forget((*mailing).hasFiles)
	if err := l.sign(); err != nil {
		return err
	}
	together(out.jobs)
	return l.recorder.RecordAll(settled)
}

// together puts the letters that are one message next to each other.
func together(jobs []deliver.Job) {
	shared := func(j deliver.Job) bool { return j.Letter.Share != 0 }
	if slices.ContainsFunc(jobs, shared) {
		slices.SortStableFunc(jobs, func(a, b deliver.Job) int { return cmp.Compare(a.Letter.Share, b.Letter.Share) })
	}
}
