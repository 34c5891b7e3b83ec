package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/bus"
	"fanfare.dev/fanfare/internal/cache"
	"fanfare.dev/fanfare/internal/clock"
	"fanfare.dev/fanfare/internal/mail/address"
	"fanfare.dev/fanfare/internal/mail/dkim"
	"fanfare.dev/fanfare/internal/mail/dkimkeys"
	"fanfare.dev/fanfare/internal/mail/mx"
	"fanfare.dev/fanfare/internal/mail/signedlink"
	"fanfare.dev/fanfare/internal/pipeline/compose"
	"fanfare.dev/fanfare/internal/pipeline/deliver"
	"fanfare.dev/fanfare/internal/pipeline/deliver/channels"
	"fanfare.dev/fanfare/internal/pipeline/record"
	"fanfare.dev/fanfare/internal/registry"
	"fanfare.dev/fanfare/internal/store/deliveries"
)

// stage is what all dispatch loops share.
type stage struct {
	bus         *bus.Bus
	store       *deliveries.Store
	registry    *registry.Registry
	recorder    *record.Recorder
	switches    *switches
	claims      *claims
	signer      *signedlink.Signer // nil without a public URL
	returns     *signedlink.Signer // of return addresses
	domains     []string           // of which mail comes in here
	sites       *mx.Sites
	clock       clock.Clock
	logger      *slog.Logger
	refuses     func(address string) bool // nothing may be sent to it
	templates   *compose.Templates
	attachments *compose.Attachments
	memory      *memory
	faults      *templateFaults
}

// serve makes a dispatch loop.
func (s *stage) serve(ctx context.Context, l channels.Loop) (run func(context.Context), err error) {
	queue, err := s.bus.Batches(ctx, l.Channel, l.Lane)
	if err != nil {
		return nil, err
	}
	d := &dispatch{
		queue: queue, outlet: l.Sender, registry: s.registry, store: s.store, channel: l.Channel, lane: l.Lane,
		clock: s.clock, logger: s.logger, loader: s.loader(l.Keys), beside: l.Leftover,
	}
	return d.run, nil
}

func (s *stage) loader(keys *dkimkeys.Keyring) *loader {
	l := &loader{stage: s, keys: keys, returns: s.returns.Clone()}
	if s.signer != nil {
		l.signer = s.signer.Clone()
	}
	return l
}

// loader turns a batch, which is a hint, into messages: it reads what is
// settled already, then people and subscriptions in bulk, and writes the
// messages. Each goroutine has its own.
type loader struct {
	*stage
	signer  *signedlink.Signer // nil without a public URL
	returns *signedlink.Signer // of return addresses

	keys    *dkimkeys.Keyring
	signing dkim.Signing
	signers []*dkim.Key // of the last batch

	manifests cache.Cache[manifestKey, *fanfare.Manifest]
	mailings  cache.Cache[mailingKey, *mailing]
}

type manifestKey struct {
	day fanfare.Day
	id  fanfare.ManifestID
}

// loaded is what came of a batch.
type loaded struct {
	jobs  []deliver.Job
	held  []fanfare.RecipientRange // paused: to be kept until they are resumed
	later []fanfare.Due            // in their quiet hours: to be kept until these are over
	mine  []fanfare.DeliveryRef    // claimed
	busy  int                      // members in other hands: the batch has to come again
	left  int                      // members with files for which there was no room: the batch comes again when the others are sent

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
	events := &ahead{store: l.store}
	passed := map[fanfare.EventRef]bool{}
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
			out.held = append(out.held, heldSlice(m))
			continue
		}
		mailing, err := l.mailingFor(ctx, events, members[i:], channel)
		if err != nil {
			return err
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
				Slice: fanfare.RecipientRange{Manifest: m.ref.Manifest, Positions: []uint32{m.ref.Position}, Attempt: m.attempt},
				Why:   hush.Why,
			})
			continue
		}
		if cap(page)-len(page) < slabReserve {
			page = out.page(l.memory)
		}
		letter, longer, by, err := l.letter(ctx, members[i:], mailing, channel, recipient, page)
		if errors.Is(err, errLater) {
			return err
		}
		if err != nil {
			held, wrong := l.unwritten(ctx, events, members, i, by, channel, people, passed, err)
			if wrong != nil {
				return wrong
			}
			if held {
				out.held = append(out.held, heldSlice(m))
			} else {
				settled = append(settled, l.entry(m, fanfare.Failed, err.Error()))
			}
			continue
		}
		page = longer
		letter.Delivery = m.ref
		out.jobs = append(out.jobs, deliver.Job{
			Message: letter, Subscriber: m.member.Subscriber, Subscriptions: m.member.Subscriptions,
			Destination: destination(channel, letter.To), Attempt: m.attempt, Expires: expires, Quiet: hush, GateState: seen, Requested: mailing.asked,
		})
		if mailing.items != nil {
			job := &out.jobs[len(out.jobs)-1]
			job.Subscriptions, job.RequiresAll = placesOf(recipient.Subscriptions), true
		}
	}
	l.mailings.Remove((*mailing).hasFiles)
	if err := l.sign(); err != nil {
		return err
	}
	together(out.jobs)
	return l.recorder.RecordAll(settled)
}

// heldSlice is a member whose broadcast is paused.
func heldSlice(m *pending) fanfare.RecipientRange {
	return fanfare.RecipientRange{Manifest: m.ref.Manifest, From: m.ref.Position, To: m.ref.Position + 1, Attempt: m.attempt}
}

// mailingFor is the mailing of the first of members, with what it tells of the next.
func (l *loader) mailingFor(ctx context.Context, events *ahead, members []pending, channel *registry.Channel) (*mailing, error) {
	m, err := l.mailings.Get(mailingKey{eventOf(&members[0]), members[0].section.Template}, func(k mailingKey) (*mailing, error) {
		posted, err := events.posted(ctx, members)
		if err != nil {
			return nil, err
		}
		return l.mailing(ctx, posted, k, channel)
	})
	if err == nil && m.items != nil {
		err = m.items.ahead(ctx, members)
	}
	return m, err
}

// together puts the letters that are one message next to each other.
func together(jobs []deliver.Job) {
	shared := func(j deliver.Job) bool { return j.Message.SharedContent != 0 }
	if slices.ContainsFunc(jobs, shared) {
		slices.SortStableFunc(jobs, func(a, b deliver.Job) int { return cmp.Compare(a.Message.SharedContent, b.Message.SharedContent) })
	}
}

// destination names who will answer for an address: whose limits count, and whose
// answers say how much more may be sent. A file has none.
func destination(channel *registry.Channel, to string) string {
	switch channel.Driver {
	case "file":
		return ""
	case "webhook":
		return address.HostPort(to)
	}
	return strings.ToLower(to[strings.LastIndexByte(to, '@')+1:])
}

// sitesPatience is how long a batch waits to learn whose domains it has. What is not
// known then has the limits of its domain alone, this time.
const sitesPatience = time.Second

// awaitSites has sites learn whose domains jobs go to, before these need a place in
// line there.
func awaitSites(ctx context.Context, sites *mx.Sites, jobs []deliver.Job) {
	domains := make([]string, len(jobs))
	for i := range jobs {
		domains[i] = jobs[i].Destination
	}
	slices.Sort(domains)
	ctx, cancel := context.WithTimeout(ctx, sitesPatience)
	defer cancel()
	sites.Await(ctx, slices.Compact(domains))
}

// signFrom has what is written from now on signed by the keys whose time it is. Where
// they are others than before, what was kept of messages is forgotten: it is signed.
func (l *loader) signFrom(now time.Time) {
	signers := dkim.At(l.keys.All(), now)
	if !slices.Equal(signers, l.signers) {
		l.mailings = cache.Cache[mailingKey, *mailing]{}
	}
	l.signers = signers
	l.signing.Begin(signers, now)
}

// sign makes the signatures of what was written. Where that fails, no message that is
// kept for others may be taken for signed.
func (l *loader) sign() error {
	err := l.signing.Finish()
	if err != nil {
		l.mailings = cache.Cache[mailingKey, *mailing]{}
	}
	return err
}
