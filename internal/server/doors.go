package server

import (
	"context"
	"strings"
	"time"

	"fanfare.dev/fanfare/internal/admin/backup"
	"fanfare.dev/fanfare/internal/admin/migrate"
	"fanfare.dev/fanfare/internal/admin/report"
	"fanfare.dev/fanfare/internal/ctxlock"
	"fanfare.dev/fanfare/internal/filetype"
	"fanfare.dev/fanfare/internal/httpapi"
	"fanfare.dev/fanfare/internal/mail/feedback"
	"fanfare.dev/fanfare/internal/mail/linktoken"
	"fanfare.dev/fanfare/internal/people/selfservice"
	"fanfare.dev/fanfare/internal/pipeline/deliver/channels"
	"fanfare.dev/fanfare/internal/store/deliveries"
)

// openDoors lets the world in: the API, the pages, and the mails that come back.
func (h *house) openDoors(ctx context.Context) error {
	if err := adminKey(ctx, h.dir, h.people); err != nil {
		return err
	}
	traces := h.traces(h.store) // of who must see what is true now
	reports := h.reports()
	direct := &messages{registry: h.people, templates: h.dispatch.templates, attachments: h.dispatch.attachments, files: filetype.Policy(h.config.AllowAttachments), most: int(h.config.MaxAttachments), collector: h.collector, recorder: h.recorder,
		traces: traces, store: h.store, queue: queue{h.hops}, floor: h.floor, clock: h.clock, keeping: new(passage)}
	moving := migrate.NewMover(migrate.Options{Config: h.config, Version: h.version, DB: h.db, Clock: h.clock, Logger: h.log, Exclusive: h.copying, Disk: h.floor})
	h.laterDo(moving.Stop)
	reports.moves = moving
	forgetting := newEraser(reports, h.copying, direct.keeping)
	h.background(forgetting.run)

	parts := h.parts(traces, reports)
	parts.Messages, parts.Moves, parts.Forgetting = direct, moving, forgetting
	if h.dispatch.signer != nil {
		if err := h.pages(&parts, direct); err != nil {
			return err
		}
	}
	h.serveInbound(h.mails)
	served := httpapi.New(parts)
	h.server.Open(served)
	h.laterDo(func() {
		ctx, cancel := context.WithTimeout(context.Background(), min(h.config.DrainTimeout, requestPatience))
		defer cancel()
		served.Drain(ctx)
	})
	h.log.Info("ready", "url", h.URL(), "durability", h.config.Durability, "data", h.dir, "database", h.db.About().Where, "took", time.Since(h.started).Round(time.Millisecond).String())
	return nil
}

func (h *house) traces(of *deliveries.Store) *report.Traces {
	return &report.Traces{Store: of, Registry: h.people, Progress: h.recorder, Queue: queue{h.hops}, Quotas: h.channels.Quotas(), Pauses: h.stops, Digests: digestReport{of, h.people}}
}

// reports is what people may see of the server; it may be a little behind.
func (h *house) reports() *reports {
	return &reports{
		Traces:  h.traces(h.late),
		version: h.version, durability: h.config.Durability, started: h.started, bus: h.hops, registry: h.people, store: h.store, database: h.db,
		recorder: h.recorder, channels: h.channels, capture: h.capture, faults: h.dispatch.faults, logger: h.log, switches: h.stops, parking: &parking{store: h.store, bus: h.hops, recorder: h.recorder, claims: h.dispatch.claims, clock: h.clock, still: ctxlock.New()}, floor: h.floor,
		verifier: h.verifier, indexing: h.history, notifier: h.notifier, states: h.states, rates: h.rates, inbound: h.mails, feedback: h.feedback.Metrics(), ready: h.ready, restored: h.note,
		gathered: &gatheredStatus{report: digestReport{h.late, h.people}, clock: h.clock},
	}
}

// parts is what the API is made of, without what has work of its own.
func (h *house) parts(traces *report.Traces, reports *reports) httpapi.Parts {
	asked := known{index: h.index, registry: h.people, states: h.states}
	return httpapi.Parts{
		States:     asked,
		Secrets:    h.channels,
		Previews:   previews{registry: h.people, store: h.store, traces: traces, attachments: h.dispatch.attachments, most: int(h.config.MaxAttachments), publicURL: h.publicURL(), clock: h.clock},
		Explaining: &report.Explainer{Traces: reports.Traces, Events: h.late, Conditions: conditions{h.people, asked, h.narrowing, h.verifier, ctxlock.New()}},
		Conditions: &judging{index: h.index, verifier: h.verifier, registry: h.people, samples: h.samples, states: asked, people: h.narrowing, clock: h.clock, matching: ctxlock.New()},
		Keys:       h.people, Keyring: h.people, Documents: documents{h.people, h.channels}, Subscriptions: subscriptions{h.people, h.floor}, Topics: topics{h.people, h.narrowing},
		Subscribers: h.people, SubscriptionLists: h.people, Suppressions: h.people, Consents: h.people,
		Merging: h.people, Personal: &personal{h.people, traces, h.store, digestReport{h.store, h.people}},
		Intake: intake{h.collector}, Reports: reports, Switches: h.stops, Destinations: &channels.Destinations{Channels: h.channels, Store: h.store, Hasten: h.waiting.Load}, Parking: reports.parking, Audit: h.people,
		Receipts: feedback.NewReceipts(feedback.ReceiptOptions{Registry: h.people, Handler: h.feedback, Clock: h.clock, Logger: h.log}),
		Backups:  &backup.Server{Dir: h.dir, DB: h.db, Bus: h.hops, Version: h.version, Clock: h.clock, Exclusive: h.copying},
		Ready:    h.ready, Metrics: reports.metrics(), MetricsOpen: h.config.MetricsOpen,
		Limits: limitsOf(&h.config), Origins: h.config.CORSOrigins, Proxies: h.config.Proxies(), AccessLog: h.config.AccessLog,
		Version: h.version, Now: h.clock.Now, Ahead: h.config.Ahead(), Log: h.log,
	}
}

// pages adds what people reach by links: they need the address of the server.
func (h *house) pages(parts *httpapi.Parts, direct *messages) error {
	passes, err := linktoken.New(h.keys.links.bytes)
	if err != nil {
		return err
	}
	self := selfservice.New(selfservice.Options{Registry: h.people, Signer: h.dispatch.signer, Seals: passes, Clock: h.clock, PublicURL: h.publicURL(), Manifests: h.store, Messages: direct})
	parts.Leaving, parts.Choices, parts.Signups, parts.Seals = self.Unsubscriber, self.Preferences, self.Signups, passes
	return nil
}

func (h *house) publicURL() string { return strings.TrimRight(h.config.PublicURL, "/") }
