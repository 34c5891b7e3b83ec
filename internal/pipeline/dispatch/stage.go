package dispatch

import (
	"context"
	"log/slog"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/bus"
	"fanfare.dev/fanfare/internal/catalog"
	"fanfare.dev/fanfare/internal/clock"
	"fanfare.dev/fanfare/internal/mail/dkim"
	"fanfare.dev/fanfare/internal/mail/dkimkeys"
	"fanfare.dev/fanfare/internal/mail/mx"
	"fanfare.dev/fanfare/internal/mail/signedlink"
	"fanfare.dev/fanfare/internal/people/registry"
	"fanfare.dev/fanfare/internal/pipeline/compose"
	"fanfare.dev/fanfare/internal/pipeline/deliver"
	"fanfare.dev/fanfare/internal/store/deliveries"
)

// Options are the dependencies that all loops share.
type Options struct {
	Bus         *bus.Bus
	Store       *deliveries.Store
	Registry    *registry.Registry
	Recorder    Recorder
	Control     Control
	Links       *signedlink.Signer // of unsubscribe and preference links; nil without a public URL
	Returns     *signedlink.Signer // of return addresses
	Domains     []string           // for which this server accepts mail
	Sites       *mx.Sites
	Templates   *compose.Templates
	Attachments *compose.Attachments
	Signers     dkim.Elsewhere            // other nodes that make slow signatures; nil: this server is alone
	Refuses     func(address string) bool // reports whether nothing may be sent to an address
	Workers     Workers                   // nil: this server has no broker
	Clock       clock.Clock
	Logger      *slog.Logger
}

// Recorder stores the outcomes of deliveries that get no message.
type Recorder interface {
	RecordAll([]fanfare.Entry) error
	Postpone(fanfare.Day, []fanfare.Due) error
	Progress(fanfare.EventRef) (p fanfare.Progress, open bool)
}

// Control knows which broadcasts and channels are paused or cancelled. Decide is called for each
// message, so it must be fast and take no lock.
type Control interface {
	Decide(event fanfare.EventRef, channel *catalog.Channel) (deliver.Decision, string)
	Holds(batch *fanfare.Batch) bool // reports whether all of a batch is paused
	Release(context.Context, ...fanfare.EventRef)
	PausedBroadcasts() []catalog.PausedScope
	Pause(ctx context.Context, scope fanfare.Scope, reason string) error
	Resume(ctx context.Context, scope fanfare.Scope, reason string) error
}

// Stage creates the dispatch loops of all channels.
type Stage struct {
	Options
	claims *Claims
	faults *TemplateFaults
	pages  pagePool
}

// New returns a Stage without loops.
func New(o Options) *Stage {
	return &Stage{Options: o, claims: newClaims(), faults: newTemplateFaults(o.Registry, o.Clock, o.Logger), pages: newPagePool()}
}

// Claims returns the deliveries that are in work.
func (s *Stage) Claims() *Claims { return s.claims }

// TemplateFaults returns the counts of template failures.
func (s *Stage) TemplateFaults() *TemplateFaults { return s.faults }

// Target specifies what a loop serves.
type Target struct {
	Channel  uint16
	Lane     fanfare.Lane
	Sender   *deliver.Sender
	Keys     *dkimkeys.Keyring
	Leftover func(func()) // runs a function for which the end of the server waits
}

// Loop creates a loop. It runs until its context ends or the bus closes.
func (s *Stage) Loop(ctx context.Context, t Target) (run func(context.Context), err error) {
	queue, err := s.Bus.Batches(ctx, t.Channel, t.Lane)
	if err != nil {
		return nil, err
	}
	l := &loop{Target: t, stage: s, queue: queue, results: make(chan loadResult, maxLoaders)}
	for range maxLoaders {
		l.loaders = append(l.loaders, s.loader(t.Keys))
	}
	return l.run, nil
}

func (s *Stage) loader(keys *dkimkeys.Keyring) *loader {
	l := &loader{Stage: s, keys: keys, returns: s.Returns.Clone(), signing: dkim.Signing{Elsewhere: s.Signers}}
	if s.Links != nil {
		l.links = s.Links.Clone()
	}
	return l
}
