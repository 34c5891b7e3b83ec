package dispatch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/cache"
	"fanfare.dev/fanfare/internal/catalog"
	"fanfare.dev/fanfare/internal/mail/address"
	"fanfare.dev/fanfare/internal/mail/dkim"
	"fanfare.dev/fanfare/internal/mail/dkimkeys"
	"fanfare.dev/fanfare/internal/mail/mx"
	"fanfare.dev/fanfare/internal/mail/signedlink"
	"fanfare.dev/fanfare/internal/pipeline/deliver"
	"fanfare.dev/fanfare/internal/render"
)

// loader turns a batch into messages: it reads which members are settled, then subscribers and
// subscriptions in bulk, and writes the messages. A loop has several, each for one batch at a time.
type loader struct {
	*Stage
	links   *signedlink.Signer // nil without a public URL
	returns *signedlink.Signer

	keys    *dkimkeys.Keyring
	signing dkim.Signing
	signers []*dkim.Key // of the last batch

	filtered  filtered                          // of the current batch
	formatted map[fanfare.DeliveryRef]formatted // of the current batch
	waits     []workerName                      // workers without an instance, for which members of the current batch wait

	manifests cache.Cache[manifestKey, *fanfare.Manifest]
	mailings  cache.Cache[mailingKey, *mailing]
}

type manifestKey struct {
	day fanfare.Day
	id  fanfare.ManifestID
}

// loaded is the result of loading a batch.
type loaded struct {
	jobs      []deliver.Job
	held      []fanfare.RecipientRange // paused: to be stored until they are resumed
	postponed []fanfare.Due            // in their quiet hours: to be stored until these end
	claimed   []fanfare.DeliveryRef
	busy      int          // members that another batch is processing: the batch must be delivered again
	left      int          // members whose files did not fit, or whose workers have not answered: the batch is delivered again after the others are sent
	waits     []workerName // workers without an instance, for which members wait
	fileBytes int          // of files that belong to single messages
	pages     []*page      // hold the messages; go back when the jobs are done
}

// openMember is a member that must be attempted.
type openMember struct {
	ref     fanfare.DeliveryRef
	attempt uint16
	section *fanfare.Section
	member  fanfare.Member
}

func (m *openMember) event() fanfare.EventRef {
	return fanfare.EventRef{Day: m.ref.Day, Seq: m.ref.Manifest.Event()}
}

// itself returns the range that contains only this member.
func (m *openMember) itself() fanfare.RecipientRange {
	return fanfare.RecipientRange{Manifest: m.ref.Manifest, From: m.ref.Position, To: m.ref.Position + 1, Attempt: m.attempt}
}

// load creates the jobs of a batch. Its claims end with the jobs; after an error nothing is claimed.
func (l *loader) load(ctx context.Context, batch *fanfare.Batch, channel *catalog.Channel) (out *loaded, err error) {
	out = &loaded{}
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("loading panicked: %v", p)
		}
		if err != nil {
			l.claims.Release(out.claimed...)
		}
	}()
	var open, cancelled []claimed
	for i := range batch.Slices {
		members := &batch.Slices[i]
		event := fanfare.EventRef{Day: batch.Day, Seq: members.Manifest.Event()}
		switch decision, reason := l.Control.Decide(event, channel); decision {
		case deliver.Hold:
			out.held = append(out.held, *members)
		case deliver.Cancel:
			cancelled = append(cancelled, l.claim(batch.Day, members, reason, out))
		default:
			open = append(open, l.claim(batch.Day, members, "", out))
		}
	}
	if err := l.cancelClaimed(ctx, batch.Day, cancelled); err != nil {
		return out, err
	}
	members, err := l.openMembers(ctx, batch.Day, open)
	if err != nil {
		return out, err
	}
	if len(members) == 0 {
		return out, nil
	}
	rows, err := l.readRows(ctx, members)
	if err != nil {
		return out, err
	}
	quiet := &quietTimes{topics: l.topicsOf, channel: channel, lane: batch.Lane, now: l.Clock.Now()}
	if err := l.write(ctx, channel, members, rows, quiet, out); err != nil {
		return out, err
	}
	if channel.Destinations.By == catalog.ByMX && batch.Lane != fanfare.Urgent {
		awaitSites(ctx, l.Sites, out.jobs)
	}
	return out, l.Recorder.Postpone(batch.Day, out.postponed)
}

// maxUnrecorded bounds the failures between two decisions of Control, since a broadcast whose
// first messages all fail is paused.
const maxUnrecorded = 100

// write writes the messages of members. Members that get no message are settled on the way.
func (l *loader) write(ctx context.Context, channel *catalog.Channel, members []openMember, rows *rows, quiet *quietTimes, out *loaded) (err error) {
	l.beginSigning(l.Clock.Now())
	defer func() { err = errors.Join(err, l.sign()) }() // cached messages are signed, too
	out.jobs = make([]deliver.Job, 0, len(members))
	var buf []byte
	var settled []fanfare.Entry
	events := &eventReader{store: l.Store}
	if err := l.filter(ctx, events, members, rows, channel, quiet); err != nil {
		return err
	}
	if err := l.format(ctx, events, members, rows, channel); err != nil {
		return err
	}
	out.waits = l.waits
	tested := map[fanfare.EventRef]bool{}
	for i := range members {
		m := &members[i]
		if len(settled) >= maxUnrecorded {
			if err := l.Recorder.RecordAll(settled); err != nil {
				return err
			}
			settled = settled[:0]
		}
		if decision, _ := l.Control.Decide(m.event(), channel); decision != deliver.Go {
			out.held = append(out.held, m.itself())
			continue
		}
		mailing, err := l.mailingFor(ctx, events, members[i:], channel)
		if err != nil {
			return err
		}
		if out.fileBytes >= maxFileBytesOfBatch && mailing.fileBytes > 0 {
			out.left += len(members) - i
			break
		}
		out.fileBytes, mailing.fileBytes = out.fileBytes+mailing.fileBytes, 0
		expires := mailing.expiry(channel)
		recipient := l.recipient(m, mailing, rows)
		var seen uint64
		if state, reason := l.refusal(mailing, recipient, channel, &seen); reason != "" {
			settled = append(settled, l.entry(m, state, reason))
			continue
		}
		wait := quiet.of(mailing, recipient.TimeZone, m.member.Subscriber, expires)
		if wait.At(l.Clock.Now()) {
			out.postponed = append(out.postponed, fanfare.Due{
				At: wholeSecond(wait.Until), Channel: channel.Number, Lane: quiet.lane,
				Slice: fanfare.RecipientRange{Manifest: m.ref.Manifest, Positions: []uint32{m.ref.Position}, Attempt: m.attempt},
				Why:   wait.Why,
			})
			continue
		}
		if mailing.event.Filter != "" {
			state, reason, asked := l.filterOutcome(m.ref, mailing)
			if !asked {
				out.left++ // no instance of the filter is connected, or the member was refused when the filter was asked and no longer is
				continue
			}
			if reason != "" {
				settled = append(settled, l.entry(m, state, reason))
				continue
			}
		}
		switch f := l.formatted[m.ref]; {
		case f.waits:
			out.left++
			continue
		case f.wrong != "":
			settled = append(settled, l.entry(m, fanfare.Failed, f.wrong))
			continue
		}
		if cap(buf)-len(buf) < minPageFree {
			buf = l.pages.take(out)
		}
		message, longer, by, err := l.message(ctx, members[i:], mailing, channel, recipient, buf)
		if errors.Is(err, errLater) {
			return err
		}
		if err != nil {
			held, wrong := l.templateFailed(ctx, events, members, i, by, channel, rows, tested, err)
			if wrong != nil {
				return wrong
			}
			if held {
				out.held = append(out.held, m.itself())
			} else {
				settled = append(settled, l.entry(m, fanfare.Failed, err.Error()))
			}
			continue
		}
		buf = longer
		message.Delivery, message.Subscriber = m.ref, m.member.Subscriber
		out.jobs = append(out.jobs, deliver.Job{
			Message: message, Subscriber: m.member.Subscriber, Subscriptions: m.member.Subscriptions,
			Destination: destination(channel, message.To), Attempt: m.attempt, Expires: expires, Quiet: wait, GateState: seen, Requested: mailing.asked,
		})
		if mailing.items != nil {
			job := &out.jobs[len(out.jobs)-1]
			job.Subscriptions, job.RequiresAll = rowIDs(recipient.Subscriptions), true
		}
	}
	l.mailings.Remove((*mailing).hasFiles)
	if err := l.sign(); err != nil {
		return err
	}
	groupSharedContent(out.jobs)
	return l.Recorder.RecordAll(settled)
}

// refusal returns why a recipient gets no message, or "". A nil recipient has no active subscription.
func (l *loader) refusal(m *mailing, r *render.Recipient, channel *catalog.Channel, seen *uint64) (state fanfare.State, reason string) {
	expires := m.expiry(channel)
	switch {
	case r == nil:
		return fanfare.Suppressed, m.noRecipient()
	case !expires.IsZero() && l.Clock.Now().After(expires):
		return fanfare.Expired, "not sent before " + expires.Format(time.RFC3339)
	}
	return fanfare.Suppressed, suppressing(l.Registry, channel, r.Address, m.asked, seen)
}

func (l *loader) entry(m *openMember, state fanfare.State, reason string) fanfare.Entry {
	return fanfare.Entry{Delivery: m.ref, Attempt: m.attempt, State: state, Text: reason, At: l.Clock.Now()}
}

// mailingFor returns the mailing of the first of members. It reads the items that the next ones
// need along with it.
func (l *loader) mailingFor(ctx context.Context, events *eventReader, members []openMember, channel *catalog.Channel) (*mailing, error) {
	m, err := l.mailings.Get(mailingKey{members[0].event(), members[0].section.Template}, func(k mailingKey) (*mailing, error) {
		event, err := events.read(ctx, members)
		if err != nil {
			return nil, err
		}
		return l.newMailing(ctx, event, k, channel)
	})
	if err == nil && m.items != nil {
		err = m.items.fetch(ctx, members)
	}
	return m, err
}

// groupSharedContent puts jobs of the same content next to each other.
func groupSharedContent(jobs []deliver.Job) {
	shared := func(j deliver.Job) bool { return j.Message.SharedContent != 0 }
	if slices.ContainsFunc(jobs, shared) {
		slices.SortStableFunc(jobs, func(a, b deliver.Job) int { return cmp.Compare(a.Message.SharedContent, b.Message.SharedContent) })
	}
}

// destination returns the domain or host that answers for an address: its limits apply. A file,
// an inbox and a phone number have none.
func destination(channel *catalog.Channel, to string) string {
	switch {
	case channel.Driver == "file", channel.Driver == "inbox", channel.SendsTexts():
		return ""
	case channel.SendsDocuments():
		return address.HostPort(to)
	}
	return strings.ToLower(to[strings.LastIndexByte(to, '@')+1:])
}

// sitesTimeout limits how long a batch waits for MX lookups. A domain without a result then uses
// the limits of the domain itself for this batch.
const sitesTimeout = time.Second

// awaitSites waits until the MX hosts of the domains of jobs are known, before the jobs are queued
// by them.
func awaitSites(ctx context.Context, sites *mx.Sites, jobs []deliver.Job) {
	domains := make([]string, len(jobs))
	for i := range jobs {
		domains[i] = jobs[i].Destination
	}
	slices.Sort(domains)
	ctx, cancel := context.WithTimeout(ctx, sitesTimeout)
	defer cancel()
	sites.Await(ctx, slices.Compact(domains))
}

// beginSigning activates the current keys. If they have changed, cached mailings are dropped
// because they contain signed content.
func (l *loader) beginSigning(now time.Time) {
	signers := dkim.At(l.keys.All(), now)
	if !slices.Equal(signers, l.signers) {
		l.mailings = cache.Cache[mailingKey, *mailing]{}
	}
	l.signers = signers
	l.signing.Begin(signers, now)
}

// sign creates the signatures of the messages that were written. After an error cached mailings are
// dropped: their content is not signed.
func (l *loader) sign() error {
	err := l.signing.Finish()
	if err != nil {
		l.mailings = cache.Cache[mailingKey, *mailing]{}
	}
	return err
}
