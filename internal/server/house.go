package server

import (
	"context"
	"net"
	"path/filepath"
	"slices"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/admin/backup"
	"fanfare.dev/fanfare/internal/admin/control"
	"fanfare.dev/fanfare/internal/admin/preview"
	"fanfare.dev/fanfare/internal/admin/recovery"
	"fanfare.dev/fanfare/internal/admin/status"
	"fanfare.dev/fanfare/internal/bus"
	"fanfare.dev/fanfare/internal/catalog"
	"fanfare.dev/fanfare/internal/condition"
	"fanfare.dev/fanfare/internal/ctxlock"
	"fanfare.dev/fanfare/internal/datadir"
	"fanfare.dev/fanfare/internal/datadir/serverkeys"
	"fanfare.dev/fanfare/internal/filetype"
	"fanfare.dev/fanfare/internal/mail/address"
	"fanfare.dev/fanfare/internal/mail/dkimkeys"
	"fanfare.dev/fanfare/internal/mail/inbound"
	"fanfare.dev/fanfare/internal/mail/mx"
	"fanfare.dev/fanfare/internal/notifier"
	"fanfare.dev/fanfare/internal/pipeline/deliver/channels"
	"fanfare.dev/fanfare/internal/pipeline/dispatch"
	"fanfare.dev/fanfare/internal/pipeline/due"
	"fanfare.dev/fanfare/internal/pipeline/ingest"
	"fanfare.dev/fanfare/internal/pipeline/match"
	"fanfare.dev/fanfare/internal/pipeline/match/topicstate"
	"fanfare.dev/fanfare/internal/pipeline/match/verify"
	"fanfare.dev/fanfare/internal/pipeline/record"
	"fanfare.dev/fanfare/internal/registry"
	controlstore "fanfare.dev/fanfare/internal/store/control"
	"fanfare.dev/fanfare/internal/store/database"
	"fanfare.dev/fanfare/internal/store/deliveries"
	"fanfare.dev/fanfare/internal/store/maintain"
	"fanfare.dev/fanfare/internal/store/retry"
)

// A house is what a start builds, one room after the other: each is opened by one
// of its methods, in the order of its fields, and knows those that were opened before.
type house struct {
	*App
	version string
	started time.Time
	dir     string
	index   *condition.Index
	copying ctxlock.Lock // of a backup, an erasure, a move, or the states

	// openStore
	note    *backup.Note // of a backup that this was restored from
	db      *database.DB
	store   *deliveries.Store
	late    *deliveries.Store // may be a little behind
	kept    *controlstore.Store
	days    []fanfare.Day
	highest fanfare.EventSeq

	// openRegistry
	channels *channels.Channels
	faults   *channels.Faults
	capture  channels.Capture
	sites    *mx.Sites
	keys     serverkeys.Keys
	people   *registry.Registry

	// openBus
	hops     *bus.Bus
	lost     bool // there was one before, and this is not it
	restored recovery.Recovery

	// openOutlets
	dispatch *dispatch.Stage

	// openRecord
	waiting  *due.Scheduler
	stops    *control.Switches
	retrying ctxlock.Lock // of parked work
	notifier *notifier.Notifier
	recorder *record.Recorder

	// openStates
	archive *maintain.StateArchive
	states  *topicstate.States
	history *maintain.History
	rates   *status.Rates

	// openVerifier
	verifier *verify.Verifier

	// openMatching
	samples   *match.Samples
	audiences *match.Audiences

	// openIntake
	floor     *datadir.DiskFloor
	collector *ingest.Collector

	// openReturns
	mails *inbound.Server // nil: none
}

// openStore opens what is kept of the past.
func (h *house) openStore(ctx context.Context) (err error) {
	if h.note, err = backup.ReadNote(h.dir); err != nil {
		return err
	}
	if h.db, err = database.Open(ctx, &h.config, h.version, h.log); err != nil {
		return err
	}
	h.later(h.db.Close)
	h.watch(h.db)
	h.store, h.late, h.kept = deliveries.New(h.db), deliveries.New(h.db.Late()), controlstore.New(h.db)
	if h.days, err = h.store.Days(ctx); err != nil {
		return err
	}
	h.highest, err = h.store.Highest(ctx)
	return err
}

// openRegistry reads who subscribes to what, and the server's own keys.
func (h *house) openRegistry(ctx context.Context) (err error) {
	resolver := resolverAt(h.config.Resolver)
	h.sites = mx.New(mx.Options{LookupMX: resolver.LookupMX, Clock: h.clock})
	h.laterDo(h.sites.Stop)
	h.capture = channels.NewCapture(h.config.Capture, h.config.AllowRecipients)
	h.faults = &channels.Faults{}
	h.channels = channels.New(channels.Options{
		Capture: h.capture, Sites: h.sites, Records: dkimkeys.OpenRecords(h.dir, resolver.LookupTXT, h.clock, h.log),
		Lease: h.config.Lease, Clock: h.clock, Logger: h.log,
	})
	if h.keys, err = serverkeys.Read(h.dir); err != nil {
		return err
	}
	h.people, err = registry.Open(ctx, registry.Options{
		Store: h.kept, Conditions: h.index, ParseAddress: address.Parse, ParseURL: address.ParseURL,
		CheckKey: h.capture.CheckKey, CompileTemplate: preview.CompileTemplate(int(h.config.MaxAttachments)), DryRunTemplate: preview.DryRunTemplate, DryRunDigest: preview.DryRunDigest, Files: filetype.Policy(h.config.AllowAttachments),
		AfterEnd: h.afterEnd(h.channels), Now: h.clock.Now, SuppressionKey: h.keys.Suppression.Bytes,
		Away: h.outage.Err, Patience: h.db.Patience(), Logger: h.log,
	})
	if err != nil {
		return err
	}
	h.laterDo(h.people.Close)
	knowsKey := func(secret string) bool {
		who, known := h.people.Authenticate(secret)
		return known && who.Operator() || h.note.New() && len(h.people.Keys("")) > 0 // a backup has keys, but no admin.key
	}
	if err := h.db.CheckPairing(h.dir, knowsKey); err != nil {
		return err
	}
	if err := h.keys.Check(h.people.Suppressed(), h.highest > 0 && (h.config.PublicURL != "" || returning(h.people)), channels.SignedByServer(h.people)); err != nil {
		return err
	}
	return h.keys.Save()
}

// openBus opens the two durable hops. After a restore what was open is held.
func (h *house) openBus(ctx context.Context) (err error) {
	if !h.note.New() {
		if h.lost, err = recovery.BusLost(h.dir, h.config.NATS != "", h.highest); err != nil {
			return err
		}
	}
	h.hops, err = bus.Open(ctx, bus.Options{
		Dir: filepath.Join(h.dir, datadir.Bus), URL: h.config.NATS, Sync: h.config.Fsync(), Lease: h.config.Lease,
		FirstSeq: recovery.FirstGroup(h.highest, h.note), Logger: h.log,
	})
	if err != nil {
		return err
	}
	h.later(h.hops.Close)
	h.restored = recovery.Recovery{Dir: h.dir, Note: h.note, Store: h.store, Registry: h.people, Bus: h.hops}
	if !h.note.New() {
		return nil
	}
	if err := h.restored.Restore(ctx, h.days, recovery.FirstGroup(h.highest, h.note)); err != nil {
		return err
	}
	h.log.Warn("restored, and everything is paused", "backup", h.note.Backup, "broadcasts", h.note.Broadcasts, "unsettled", h.note.Deliveries, "unmatched", h.note.Unmatched)
	return nil
}

// openRecord begins to keep outcomes, with what an earlier run left open.
func (h *house) openRecord(ctx context.Context) error {
	h.waiting = due.New(h.store, h.hops, h.clock, h.log)
	h.notifier = notifier.New(h.store, h.kept, h.people, h.clock, h.log)
	h.recorder = record.Start(record.Options{
		Store: h.store, Clock: h.clock, Logger: h.log, WorkDue: h.waiting.Add, WantsCallback: h.notifier.Hears, CallbacksRecorded: h.notifier.MarkDay,
		OnAllFailed: func(ref fanfare.EventRef) {
			ctx := h.channels.Context()
			if err := retry.WhileAway(ctx, func() error { return h.stops.PauseFailing(context.Background(), ref) }); err != nil {
				h.log.Log(ctx, bus.FailureLevel(ctx, err), "a broadcast that only fails could not be paused", "event", ref.String(), "error", err)
			}
		},
	})
	h.laterDo(h.recorder.Stop)
	h.stops, h.retrying = control.New(control.Options{
		Registry: h.people, Store: h.store, Recorder: h.recorder, Due: h.waiting, Faults: h.faults, Clock: h.clock, Logger: h.log,
		DrainRelay: h.channels.DrainRelay, ApplyRates: h.channels.Reconcile, DropStopped: h.channels.Sweep, RatesChanged: h.channels.FlowsChanged,
	}), ctxlock.New()
	if err := h.recover(ctx); err != nil || !h.lost {
		return err
	}
	open, err := h.restored.ReplaceBus(ctx, h.days, h.waiting)
	if err != nil {
		return err
	}
	h.log.Warn("the bus was lost and is new: what was open goes on, events that were not matched are gone", "broadcasts", open)
	return nil
}

// recover learns what an earlier run left open.
func (h *house) recover(ctx context.Context) error {
	for _, day := range h.days {
		err := h.store.Open(ctx, day, func(seq fanfare.EventSeq, messages int64, progress fanfare.Progress) {
			h.recorder.Begin(fanfare.EventRef{Day: day, Seq: seq}, messages, progress)
		})
		if err != nil {
			return err
		}
		if err := h.waiting.Load(ctx, day); err != nil {
			return err
		}
	}
	return h.stops.Load(ctx, h.days)
}

// resolverAt returns a resolver that asks the DNS server at an address, "" for those of the machine.
func resolverAt(server string) *net.Resolver {
	if server == "" {
		return net.DefaultResolver
	}
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, server)
	}}
}

// returning reports whether a channel has return addresses.
func returning(people *registry.Registry) bool {
	return slices.ContainsFunc(people.Channels(), func(c *catalog.Channel) bool { return c.Returns != "" })
}
