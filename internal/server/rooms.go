package server

import (
	"context"
	"fmt"
	"time"

	"fanfare.dev/fanfare/internal/mail/signedlink"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/datadir"
	"fanfare.dev/fanfare/internal/mail/feedback"
	"fanfare.dev/fanfare/internal/pipeline/compose"
	"fanfare.dev/fanfare/internal/pipeline/deliver/channels"
	"fanfare.dev/fanfare/internal/pipeline/ingest"
	"fanfare.dev/fanfare/internal/pipeline/match/topicstate"
	"fanfare.dev/fanfare/internal/store/maintain"
)

// openOutlets begins to deliver.
func (h *house) openOutlets(ctx context.Context) (err error) {
	d := &stage{
		bus: h.hops, store: h.store, registry: h.people, recorder: h.recorder, switches: h.stops, claims: newClaims(), domains: h.config.InboundDomains, sites: h.sites,
		clock: h.clock, logger: h.log, refuses: h.capture.Refuses, templates: compose.NewTemplates(h.people), attachments: compose.NewAttachments(h.people, h.store),
		memory: newMemory(), faults: newTemplateFaults(h.people, h.clock, h.log),
	}
	if h.config.PublicURL != "" {
		if d.signer, err = signedlink.NewSigner(h.config.PublicURL, h.keys.links.bytes); err != nil {
			return err
		}
	}
	if d.returns, err = signedlink.NewReturnSigner(h.keys.links.bytes); err != nil {
		return err
	}
	h.dispatch = d
	err = h.channels.Start(ctx, channels.Parts{
		Registry: h.people, Recorder: h.recorder, Faults: h.faults, Release: h.freeing.soon, Gate: d.gate, Flows: h.stops.paces, Waiting: h.hops.Waiting, Dispatch: d.serve,
		ReplyRules: h.config.ReplyRules, Files: channels.NewFileMarks(h.dir, h.keys.links.bytes, h.started), WebhookKey: h.keys.webhooks.bytes, Networks: h.config.Networks(),
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
	h.rates = &rates{recorder: h.recorder, channels: h.channels}
	retention := maintain.NewRetention(maintain.RetentionOptions{Store: h.store, Open: h.recorder.Open, Archive: h.archive.Archive, Age: time.Duration(h.config.Retention) * 24 * time.Hour, Clock: h.clock, Logger: h.log})
	h.background(h.waiting.Run, h.freeing.run, h.history.Index, h.history.Merge, retention.Run, h.archive.Run, h.rates.run, (&mending{switches: h.stops, registry: h.people, logger: h.log}).run)
	return nil
}

// openMatching begins to gather digests, and to match.
func (h *house) openMatching(ctx context.Context) error {
	gathering := newGathering(h.store, h.people, &cases{verifier: h.verifier, registry: h.people, states: h.states, store: h.store}, h.hops, h.clock, h.log)
	if err := gathering.Load(ctx, h.days); err != nil {
		return fmt.Errorf("digests: %w", err)
	}
	h.background(gathering.Run)
	h.samples, h.narrowing = newSamples(), &audiences{registry: h.people}
	for _, lane := range fanfare.Lanes {
		queue, err := h.hops.Events(ctx, lane)
		if err != nil {
			return err
		}
		m := &matching{lane: lane, queue: queue, bus: h.hops, index: h.index, verifier: h.verifier, registry: h.people, store: h.store, recorder: h.recorder, switches: h.stops,
			states: h.states, samples: h.samples, people: h.narrowing, gathering: gathering, clock: h.clock, logger: h.log}
		h.background(m.run)
	}
	return nil
}

// openIntake begins to take events: those that services send, and those that tell
// them what became of deliveries.
func (h *house) openIntake(ctx context.Context) error {
	h.floor = &datadir.DiskFloor{Dir: h.dir, Floor: h.config.DiskFloor}
	h.collector = ingest.Start(ingest.Options{Log: h.hops, Topics: topics{h.people, h.narrowing}, Clock: h.clock, Floor: h.floor.Check, Ahead: h.config.Ahead()})
	h.laterDo(h.collector.Stop)
	err := h.hops.ReplayEvents(ctx, h.clock.Now().Add(-ingest.Horizon), func(seq uint64, _ time.Time, group []byte) error {
		events, err := ingest.Decode(group, seq)
		h.collector.Remember(events)
		return err
	})
	if err != nil {
		return fmt.Errorf("known ids: %w", err)
	}
	h.notifier.PostTo(h.collector)
	h.background(h.notifier.Run)
	h.background(func(ctx context.Context) { trim(ctx, h.hops, h.clock, h.log) })
	return nil
}

// openReturns begins to take what comes back: bounces, complaints, receipts and
// mails that unsubscribe.
func (h *house) openReturns(context.Context) (err error) {
	h.feedback = feedback.New(feedback.Options{Store: h.store, Control: h.kept, Registry: h.people, Recorder: h.recorder, Signer: h.dispatch.returns, Clock: h.clock, Logger: h.log})
	h.background(h.feedback.Run)
	h.background((&housekeeping{registry: h.people, clock: h.clock, log: h.log, audit: time.Duration(max(h.config.AuditDays, h.config.Retention)) * 24 * time.Hour}).run)
	h.mails, err = h.listenInbound(h.people, h.store, h.dispatch.returns, h.feedback)
	return err
}
