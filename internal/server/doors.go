package server

import (
	"context"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/admin/backup"
	"fanfare.dev/fanfare/internal/admin/control"
	"fanfare.dev/fanfare/internal/admin/inspect"
	"fanfare.dev/fanfare/internal/admin/migrate"
	"fanfare.dev/fanfare/internal/admin/preview"
	"fanfare.dev/fanfare/internal/admin/privacy"
	"fanfare.dev/fanfare/internal/admin/report"
	"fanfare.dev/fanfare/internal/admin/status"
	"fanfare.dev/fanfare/internal/filetype"
	"fanfare.dev/fanfare/internal/httpapi"
	"fanfare.dev/fanfare/internal/httpapi/wire"
	"fanfare.dev/fanfare/internal/mail/feedback"
	"fanfare.dev/fanfare/internal/mail/linktoken"
	"fanfare.dev/fanfare/internal/people/selfservice"
	"fanfare.dev/fanfare/internal/pipeline/deliver/channels"
	"fanfare.dev/fanfare/internal/pipeline/ingest"
	"fanfare.dev/fanfare/internal/pipeline/ingest/messages"
	"fanfare.dev/fanfare/internal/registry"
	"fanfare.dev/fanfare/internal/store/deliveries"
)

// openDoors lets the world in: the API, the pages, and the mails that come back.
func (h *house) openDoors(ctx context.Context) error {
	if err := adminKey(ctx, h.dir, h.people); err != nil {
		return err
	}
	traces := h.traces(h.store) // of who must see what is true now
	accepting := new(privacy.Barrier)
	direct := messages.New(messages.Options{
		Registry: h.people, Templates: h.dispatch.Templates, Attachments: h.dispatch.Attachments, Files: filetype.Policy(h.config.AllowAttachments), MaxBytes: int(h.config.MaxAttachments),
		Collector: h.collector, Recorder: h.recorder, Traces: traces, Store: h.store, Disk: h.floor, Clock: h.clock, Accepting: accepting,
		Accepted: func(ctx context.Context, ref fanfare.EventRef) (*fanfare.AcceptedEvent, error) {
			posted, _, err := report.Accepted(ctx, traces.Queue, h.store, ref)
			return posted, err
		},
		Estimate: func(channel uint16, messages int) wire.DryRunChannel {
			return inspect.ChannelRun(h.people, channel, messages)
		},
	})
	moving := migrate.NewMover(migrate.Options{Config: h.config, Version: h.version, DB: h.db, Clock: h.clock, Logger: h.log, Exclusive: h.copying, Disk: h.floor})
	h.laterDo(moving.Stop)
	parking := control.NewParking(control.ParkingOptions{Store: h.store, Bus: h.hops, Retrying: h.retrying, Cancel: h.dispatch.Cancel})
	reports := h.reporter(moving, parking)
	forgetting := privacy.NewEraser(privacy.Options{
		Registry: h.people, Store: h.store, Bus: h.hops, Recorder: h.recorder, Claims: h.dispatch.Claims(), Drop: h.channels.Drop, Clock: h.clock, Logger: h.log,
		Exclusive: h.copying, Retrying: h.retrying, Accepting: accepting,
	})
	h.background(forgetting.Run)

	parts := h.parts(traces, reports)
	parts.Messages, parts.Moves, parts.Forgetting, parts.Parking = direct, moving, forgetting, parking
	if h.dispatch.Links != nil {
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
	return &report.Traces{Store: of, Registry: h.people, Progress: h.recorder, Queue: ingest.Queue{Log: h.hops}, Quotas: h.channels.Quotas(), Pauses: h.stops, Digests: inspect.Digests{Store: of, Registry: h.people}}
}

// reporter reports the status of the server. Its database may be a standby that is a little behind.
func (h *house) reporter(moves *migrate.Mover, parking *control.Parking) *status.Reporter {
	digests := &inspect.DigestStatus{Digests: inspect.Digests{Store: h.late, Registry: h.people}, Clock: h.clock}
	return status.New(status.Options{
		Traces: h.traces(h.late), Version: h.version, Durability: h.config.Durability, Started: h.started, Restored: h.note, Ready: h.ready,
		Bus: h.hops, DB: h.db, Disk: h.floor, Registry: h.people, Recorder: h.recorder, Rates: h.rates, Channels: h.channels, Capture: h.capture,
		Switches: h.stops, Parking: parking, States: h.states, Inbound: h.mails, Notifier: h.notifier,
		TemplateFaults: h.dispatch.TemplateFaults().Status, IndexLag: h.history.Lag, NextStart: moves.BeforeNextStart, Gathered: digests.List,
		MatchCheck: func() *wire.MatchCheck { return inspect.MatchCheck(h.verifier, h.people) },
		Collectors: []prometheus.Collector{h.feedback.Metrics()},
		Register:   []func(*prometheus.Registry){func(to *prometheus.Registry) { inspect.RegisterMatchMetrics(h.verifier, to) }},
	})
}

// parts is what the API is made of, without what has work of its own.
func (h *house) parts(traces *report.Traces, reports *status.Reporter) httpapi.Parts {
	inspector := inspect.New(inspect.Options{Index: h.index, Verifier: h.verifier, Registry: h.people, States: h.states, Samples: h.samples, Audiences: h.audiences, Clock: h.clock})
	return httpapi.Parts{
		States:     inspector,
		Secrets:    h.channels,
		Previews:   preview.Previewer{Registry: h.people, Store: h.store, Traces: traces, Attachments: h.dispatch.Attachments, MaxBytes: int(h.config.MaxAttachments), PublicURL: h.publicURL(), Clock: h.clock},
		Explaining: &report.Explainer{Traces: reports.Traces, Events: h.late, Conditions: explained{h.people, inspector}},
		Conditions: inspector,
		Keys:       h.people, Keyring: h.people, Documents: documents{h.people, h.channels}, Subscriptions: subscriptions{h.people, h.floor}, Topics: topics{h.people, h.audiences},
		Subscribers: h.people, SubscriptionLists: h.people, Suppressions: h.people, Consents: h.people,
		Merging: h.people, Personal: &privacy.Exporter{Registry: h.people, Traces: traces, Store: h.store, Digests: inspect.Digests{Store: h.store, Registry: h.people}},
		Intake: h.collector, Reports: reports, Switches: h.stops, Destinations: &channels.Destinations{Channels: h.channels, Store: h.store, Hasten: h.waiting.Load}, Audit: h.people,
		Receipts: feedback.NewReceipts(feedback.ReceiptOptions{Registry: h.people, Handler: h.feedback, Clock: h.clock, Logger: h.log}),
		Backups:  &backup.Server{Dir: h.dir, DB: h.db, Bus: h.hops, Version: h.version, Clock: h.clock, Exclusive: h.copying},
		Ready:    h.ready, Metrics: reports.Metrics(), MetricsOpen: h.config.MetricsOpen,
		Limits: httpapi.Limits{Requests: h.config.MaxRequests, RequestsPerKey: h.config.MaxRequestsPerKey, RatePerSecond: h.config.RateLimit, Burst: h.config.RateBurst}, Origins: h.config.CORSOrigins, Proxies: h.config.Proxies(), AccessLog: h.config.AccessLog,
		Version: h.version, Now: h.clock.Now, Log: h.log,
	}
}

// pages adds what people reach by links: they need the address of the server.
func (h *house) pages(parts *httpapi.Parts, direct *messages.Messages) error {
	passes, err := linktoken.New(h.keys.Links.Bytes)
	if err != nil {
		return err
	}
	self := selfservice.New(selfservice.Options{Registry: h.people, Signer: h.dispatch.Links, Seals: passes, Clock: h.clock, PublicURL: h.publicURL(), Manifests: h.store, Messages: direct})
	parts.Leaving, parts.Choices, parts.Signups, parts.Seals = self.Unsubscriber, self.Preferences, self.Signups, passes
	return nil
}

// explained is what explanations read: subscriptions, and their conditions.
type explained struct {
	*registry.Registry
	*inspect.Inspector
}

func (h *house) publicURL() string { return strings.TrimRight(h.config.PublicURL, "/") }
