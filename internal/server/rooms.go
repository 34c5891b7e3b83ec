package server

import (
	"context"
	"fmt"
	"time"

	"fanfare.dev/fanfare/internal/admin/control"
	"fanfare.dev/fanfare/internal/admin/status"
	"fanfare.dev/fanfare/internal/mail/signedlink"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/datadir"
	"fanfare.dev/fanfare/internal/mail/feedback"
	"fanfare.dev/fanfare/internal/pipeline/compose"
	"fanfare.dev/fanfare/internal/pipeline/deliver/channels"
	"fanfare.dev/fanfare/internal/pipeline/digest"
	"fanfare.dev/fanfare/internal/pipeline/dispatch"
	"fanfare.dev/fanfare/internal/pipeline/eventgroup"
	"fanfare.dev/fanfare/internal/pipeline/ingest"
	"fanfare.dev/fanfare/internal/pipeline/match"
	"fanfare.dev/fanfare/internal/pipeline/match/topicstate"
	"fanfare.dev/fanfare/internal/pipeline/match/verify"
	"fanfare.dev/fanfare/internal/store/maintain"
)

// openOutlets begins to deliver.
func (h *house) openOutlets(ctx context.Context) (err error) {
	o := dispatch.Options{
		Bus: h.hops, Store: h.store, Registry: h.people, Recorder: h.recorder, Control: h.stops, Domains: h.config.InboundDomains, Sites: h.sites,
		Templates: compose.NewTemplates(h.people), Attachments: compose.NewAttachments(h.people, h.store), Refuses: h.capture.Refuses, Clock: h.clock, Logger: h.log,
	}
	if h.config.PublicURL != "" {
		if o.Links, err = signedlink.NewSigner(h.config.PublicURL, h.keys.Links.Bytes); err != nil {
			return err
		}
	}
	if o.Returns, err = signedlink.NewReturnSigner(h.keys.Links.Bytes); err != nil {
		return err
	}
	h.dispatch = dispatch.New(o)
	err = h.channels.Start(ctx, channels.Parts{
		Registry: h.people, Recorder: h.recorder, Faults: h.faults, Release: h.stops.ReleaseSoon, Gate: h.dispatch.Gate, Flows: h.stops.Rates(), Waiting: h.hops.Waiting,
		Dispatch: func(ctx context.Context, l channels.Loop) (func(context.Context), error) {
			return h.dispatch.Loop(ctx, dispatch.Target(l))
		},
		ReplyRules: h.config.ReplyRules, Files: channels.NewFileMarks(h.dir, h.keys.Links.Bytes, h.started), WebhookKey: h.keys.Webhooks.Bytes, Networks: h.config.Networks(),
	})
	if err != nil {
		return err
	}
	h.background(h.channels.Tasks()...)
	h.laterDo(func() { h.channels.Drain(h.config.DrainTimeout) })
	return nil
}

// openStates opens what topics remember, and begins what is done behind: the index
// of the history, retries, retention.
func (h *house) openStates(ctx context.Context) error {
	h.states = topicstate.New()
	h.archive = maintain.NewStateArchive(h.states, h.store, h.kept, h.people.KeySeries, h.copying, h.log)
	if err := h.archive.Load(ctx, h.days); err != nil {
		return fmt.Errorf("states: %w", err)
	}
	h.history = maintain.NewHistory(h.store, h.log)
	if err := h.history.Sweep(ctx); err != nil {
		return err
	}
	h.rates = status.NewRates(h.recorder, h.channels)
	retention := maintain.NewRetention(maintain.RetentionOptions{Store: h.store, Open: h.recorder.Open, Archive: h.archive.Archive, Age: time.Duration(h.config.Retention) * 24 * time.Hour, Clock: h.clock, Logger: h.log})
	h.background(h.waiting.Run, h.stops.Run, h.history.Index, h.history.Merge, retention.Run, h.archive.Run, h.rates.Run, h.dispatch.ResumePaused)
	return nil
}

// openVerifier begins to check the answers of the index.
func (h *house) openVerifier(context.Context) error {
	h.verifier = verify.New(verify.Options{
		Index: h.index, Store: h.people, Share: verify.Share(h.config.MatchCheck), Meter: verify.ProcessMeter{Start: time.Now()}, Now: h.clock.Now, Logger: h.log,
	})
	if n := len(h.people.Quarantined()); n > 0 {
		h.log.Warn("conditions are in quarantine since the matching index was wrong about them: they are evaluated without it, see fanfare status", "conditions", n)
	}
	return nil
}

// openMatching starts digests and matching.
func (h *house) openMatching(ctx context.Context) error {
	current := &match.CurrentState{Verifier: h.verifier, Registry: h.people, States: h.states, Store: h.store}
	digests := digest.New(digest.Options{
		Store: h.store, Slots: h.people, Clock: h.clock, Live: h.people.Live, Logger: h.log, Topic: h.digestTopic,
		State: func(ctx context.Context, slot digest.Slot, visit func(*fanfare.AcceptedEvent, []fanfare.Hit) error) error {
			return current.Visit(ctx, slot.Service, slot.Number, visit)
		},
		Publish: func(ctx context.Context, run *fanfare.AcceptedEvent) error {
			group, err := eventgroup.Encode(run)
			if err == nil {
				_, err = h.hops.AppendEvents(ctx, run.Lane, group)
			}
			return err
		},
	})
	if err := digests.Load(ctx, h.days); err != nil {
		return fmt.Errorf("digests: %w", err)
	}
	h.background(digests.Run)
	h.samples, h.audiences = match.NewSamples(), match.NewAudiences(h.people)
	for _, lane := range fanfare.Lanes {
		m, err := match.New(ctx, lane, match.Options{Bus: h.hops, Index: h.index, Verifier: h.verifier, Registry: h.people, Store: h.store, States: h.states, Samples: h.samples,
			Audiences: h.audiences, Digests: matchDigests{digests}, Recorder: h.recorder, Held: h.stops.Held, Clock: h.clock, Logger: h.log})
		if err != nil {
			return err
		}
		h.background(m.Run)
	}
	return nil
}

// matchDigests are the digests as matching calls them.
type matchDigests struct{ *digest.Gathering }

// Begin begins a round of matching.
func (d matchDigests) Begin() match.DigestRound { return d.Gathering.Begin() }

// digestTopic returns how a digest reports the events of a topic.
func (h *house) digestTopic(service, name string) (t digest.Topic, ok bool) {
	topic, ok := h.people.Topic(service, name)
	if !ok {
		return t, false
	}
	settings := topic.LatestDigest()
	t.Max = settings.Max
	if settings.Key != "" {
		t.Key = settings.KeyOf
	}
	t.Template, ok = h.people.DigestTemplate(topic)
	return t, ok
}

// openIntake begins to take events: those that services send, and those that tell
// them what became of deliveries.
func (h *house) openIntake(ctx context.Context) error {
	h.floor = &datadir.DiskFloor{Dir: h.dir, Floor: h.config.DiskFloor}
	h.collector = ingest.Start(ingest.Options{Log: h.hops, Topics: topics{h.people, h.audiences}, Clock: h.clock, Floor: h.floor.Check})
	h.laterDo(h.collector.Stop)
	err := h.hops.ReplayEvents(ctx, h.clock.Now().Add(-ingest.Horizon), func(seq uint64, _ time.Time, group []byte) error {
		events, err := eventgroup.Decode(group, seq)
		h.collector.Remember(events)
		return err
	})
	if err != nil {
		return fmt.Errorf("known ids: %w", err)
	}
	h.notifier.PostTo(h.collector)
	h.background(h.notifier.Run)
	h.background(func(ctx context.Context) { ingest.Trim(ctx, h.hops.TrimEvents, h.clock, h.log) })
	return nil
}

// openReturns begins to take what comes back: bounces, complaints, receipts and
// mails that unsubscribe.
func (h *house) openReturns(context.Context) (err error) {
	h.feedback = feedback.New(feedback.Options{Store: h.store, Control: h.kept, Registry: h.people, Recorder: h.recorder, Signer: h.dispatch.Returns, Clock: h.clock, Logger: h.log})
	h.background(h.feedback.Run)
	h.background((&control.Housekeeping{Registry: h.people, Clock: h.clock, Logger: h.log, AuditAge: time.Duration(max(h.config.AuditDays, h.config.Retention)) * 24 * time.Hour}).Run)
	h.mails, err = h.listenInbound(h.people, h.store, h.dispatch.Returns, h.feedback)
	return err
}
