// Package app puts Fanfare together: it opens what is kept, starts the stages
// in the order in which data flows backwards (those that take before those that
// give), and ends them in reverse. It is the only place that names concretes.
package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/api"
	"fanfare.dev/fanfare/internal/backup"
	"fanfare.dev/fanfare/internal/bus"
	"fanfare.dev/fanfare/internal/collect"
	"fanfare.dev/fanfare/internal/config"
	"fanfare.dev/fanfare/internal/filetype"
	"fanfare.dev/fanfare/internal/format"
	"fanfare.dev/fanfare/internal/kit"
	"fanfare.dev/fanfare/internal/match"
	"fanfare.dev/fanfare/internal/record"
	"fanfare.dev/fanfare/internal/registry"
	"fanfare.dev/fanfare/internal/report"
	"fanfare.dev/fanfare/internal/seal"
	"fanfare.dev/fanfare/internal/state"
	"fanfare.dev/fanfare/internal/store/control"
	"fanfare.dev/fanfare/internal/store/deliveries"
)

// busDir is where the embedded bus has its files, in the data directory.
const busDir = "bus"

// Options are what the command line adds to the configuration.
type Options struct {
	Version string
	Logger  *slog.Logger
}

// App is a running Fanfare.
type App struct {
	config config.Config
	log    *slog.Logger
	clock  kit.Clock

	absence  *absence     // of the database; nil before it is open
	giveUp   func() error // ends what waits for a database that is away; nil with files
	server   *api.Server
	returns  *returnTaker
	unwind   []func() error // in reverse order of what was acquired
	draining atomic.Bool
	stopOnce sync.Once
	stopErr  error
}

// Start opens everything and returns when the API answers.
func Start(ctx context.Context, c config.Config, o Options) (*App, error) {
	a := &App{config: c, log: o.Logger, clock: kit.System{}}
	if err := a.start(ctx, o); err != nil {
		return nil, errors.Join(err, a.Stop())
	}
	return a, nil
}

// URL is where the API answers.
func (a *App) URL() string {
	scheme := "http"
	if a.config.TLSCert != "" {
		scheme = "https"
	}
	return scheme + "://" + a.server.Addr().String()
}

// Done is closed when the API has ended, by Stop or by itself.
func (a *App) Done() <-chan struct{} { return a.server.Done() }

// Stop takes nothing new, lets what is on the wire end, and closes everything.
// What has not left is resumed by the next start. A second call waits for the
// first.
func (a *App) Stop() error {
	a.stopOnce.Do(func() {
		a.draining.Store(true)
		a.stopErr = a.undo(0, a.config.DrainTimeout+stopPatience)
	})
	return a.stopErr
}

func (a *App) start(ctx context.Context, o Options) error {
	started := a.clock.Now()
	dir := a.config.DataDir
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("data directory: %w", err)
	}
	unlock, err := lockDir(dir)
	if err != nil {
		return err
	}
	a.later(unlock)
	if err := backup.Interrupted(dir); err != nil {
		return err
	}
	if a.server, err = api.Listen(api.ServerOptions{Address: a.config.Listen, Cert: a.config.TLSCert, Key: a.config.TLSKey, Log: a.log}); err != nil {
		return err
	}
	a.later(a.closeServer)
	return a.reach(ctx, func() error { return a.open(ctx, o, started) })
}

// open opens everything that is kept, and begins to work.
func (a *App) open(ctx context.Context, o Options, started time.Time) error {
	dir := a.config.DataDir
	note, err := backup.ReadNote(dir)
	if err != nil {
		return err
	}
	db, err := a.openDatabase(ctx, o.Version)
	if err != nil {
		return err
	}
	a.later(db.Close)
	a.watch(db)
	store := deliveries.New(db)
	late := deliveries.New(db.Late())
	days, err := store.Days(ctx)
	if err != nil {
		return err
	}
	highest, err := store.Highest(ctx)
	if err != nil {
		return err
	}

	index, kept := match.New(), control.New(db)
	outlets := &outlets{store: store, claims: newClaims(), lease: a.config.Lease, clock: a.clock, logger: a.log, open: map[uint16]*outlet{}}
	outlets.ctx, outlets.stop = context.WithCancel(context.Background())
	outlets.sites = newSites(a.config.Resolver, a.clock)
	a.laterDo(outlets.sites.Stop)
	outlets.captured = newCaptured(a.config.Capture, a.config.AllowRecipients)
	keys, err := readKeys(dir)
	if err != nil {
		return err
	}
	people, err := registry.Open(ctx, registry.Options{
		Store: kept, Conditions: index, ParseAddress: format.ParseAddress, ParseURL: format.ParseURL,
		CheckKey: outlets.captured.checkKey, CompileTemplate: compileTemplate(int(a.config.MaxAttachments)), DryRunTemplate: dryRunTemplate, DryRunDigest: dryRunDigest, Files: filetype.Policy(a.config.AllowAttachments),
		AfterEnd: a.afterEnd(outlets), Now: a.clock.Now, SuppressionKey: keys.suppression.bytes,
		Away: a.absence.check, Patience: db.patience(), Logger: a.log,
	})
	if err != nil {
		return err
	}
	a.laterDo(people.Close)
	if err := db.belong(dir, people, note.New()); err != nil {
		return err
	}
	if err := keys.check(people.Suppressed(), highest > 0 && (a.config.PublicURL != "" || returning(people)), signing(people)); err != nil {
		return err
	}
	if err := keys.keep(); err != nil {
		return err
	}

	lost := false
	if !note.New() { // else what was open is held
		if lost, err = lostBus(dir, a.config.NATS != "", highest); err != nil {
			return err
		}
	}
	hops, err := bus.Open(ctx, bus.Options{
		Dir: filepath.Join(dir, busDir), URL: a.config.NATS, Sync: a.config.Fsync(), Lease: a.config.Lease,
		FirstSeq: firstGroup(highest, note), Logger: a.log,
	})
	if err != nil {
		return err
	}
	a.later(hops.Close)
	restored := restoring{dir: dir, note: note, store: store, registry: people, bus: hops}
	if note.New() {
		if err := restored.finish(ctx, days, firstGroup(highest, note)); err != nil {
			return err
		}
		a.log.Warn("restored, and everything is paused", "backup", note.Backup, "broadcasts", note.Broadcasts, "unsettled", note.Deliveries, "unmatched", note.Unmatched)
	}

	waiting := newDue(store, hops, a.clock, a.log)
	freeing := newReleasing(waiting, store, a.log)
	stops := &switches{registry: people, store: store, clock: a.clock, paces: &paces{}, resumed: freeing.release,
		reconfigured: outlets.reconcile, stopped: outlets.sweep, hurry: outlets.hurry, relay: outlets.drainRelay}
	telling := newNoticing(store, people, a.clock, a.log)
	recorder := record.Start(record.Options{
		Store: store, Clock: a.clock, Logger: a.log, Due: waiting.tell, Hears: telling.hears, Told: telling.tell,
		Sour: func(ref fanfare.EventRef) {
			if err := persist(outlets.ctx, func() error { return stops.pauseSour(context.Background(), ref) }); err != nil {
				a.log.Error("a broadcast that only fails could not be paused", "event", ref.String(), "error", err)
			}
		},
	})
	a.laterDo(recorder.Stop)
	stops.recorder, freeing.switches = recorder, stops
	if err := a.recover(ctx, days, store, recorder, stops, waiting); err != nil {
		return err
	}
	if lost {
		open, err := restored.mend(ctx, days, waiting)
		if err != nil {
			return err
		}
		a.log.Warn("the bus was lost and is new: what was open goes on, events that were not matched are gone", "broadcasts", open)
	}

	if a.config.PublicURL != "" {
		if outlets.signer, err = format.NewSigner(a.config.PublicURL, keys.links.bytes); err != nil {
			return err
		}
	}
	if outlets.returns, err = format.NewReturnSigner(keys.links.bytes); err != nil {
		return err
	}
	outlets.domains = a.config.InboundDomains
	outlets.bus, outlets.registry, outlets.recorder, outlets.switches = hops, people, recorder, stops
	outlets.budgets = &budgets{quotas: quotas{registry: people, clock: a.clock, logger: a.log}, clock: a.clock}
	outlets.hooks = hooks{key: keys.webhooks.bytes, networks: a.config.Networks()}
	if outlets.captured.inForce() {
		a.log.Warn(outlets.captured.said(), "capture", a.config.Capture, "allow_recipients", len(a.config.AllowRecipients))
	}
	outlets.replies = newReplies(a.config.ReplyRules, a.log)
	a.background(outlets.replies.run)
	a.background(outlets.rereadKeys)
	outlets.templates, outlets.memory = &templates{registry: people}, newMemory()
	outlets.enclosures = &enclosures{registry: people, store: store}
	if err := outlets.reconcile(ctx); err != nil {
		return err
	}
	a.laterDo(func() { outlets.drain(a.config.DrainTimeout) })

	copying := make(turn, 1)
	following := &carrying{states: state.New(), days: store, control: kept, series: seriesOf(people), copying: copying, logger: a.log}
	if err := following.load(ctx, days); err != nil {
		return fmt.Errorf("states: %w", err)
	}
	history := &indexing{store: store, recorder: recorder, carry: following.day, clock: a.clock, logger: a.log, retention: time.Duration(a.config.Retention) * 24 * time.Hour}
	if err := history.sweep(ctx); err != nil {
		return err
	}
	rates := &rates{recorder: recorder, outlets: outlets}
	a.background(waiting.run, freeing.run, history.run, history.merge, history.remove, following.run, rates.run)
	gathering := newGathering(store, people, &cases{index: index, registry: people, states: following.states, store: store}, hops, a.clock, a.log)
	if err := gathering.Load(ctx, days); err != nil {
		return fmt.Errorf("digests: %w", err)
	}
	a.background(gathering.Run)
	seen, narrowing := newSamples(), &audiences{registry: people}
	for _, lane := range fanfare.Lanes {
		queue, err := hops.Events(ctx, lane)
		if err != nil {
			return err
		}
		m := &matching{lane: lane, queue: queue, bus: hops, index: index, registry: people, store: store, recorder: recorder, switches: stops, states: following.states, samples: seen, people: narrowing, gathering: gathering, clock: a.clock, logger: a.log}
		a.background(m.run)
	}

	floor := &diskFloor{dir: dir, floor: a.config.DiskFloor}
	collector := collect.Start(collect.Options{Log: hops, Topics: topics{people, narrowing}, Clock: a.clock, Floor: floor.Check, Ahead: a.config.Ahead()})
	a.laterDo(collector.Stop)
	err = hops.ReplayEvents(ctx, a.clock.Now().Add(-collect.Horizon), func(seq uint64, _ time.Time, group []byte) error {
		events, err := collect.Decode(group, seq)
		collector.Remember(events)
		return err
	})
	if err != nil {
		return fmt.Errorf("known ids: %w", err)
	}
	telling.collector = collector
	a.background(telling.run)
	a.background(func(ctx context.Context) { trim(ctx, hops, a.clock, a.log) })
	a.returns = (&returnTaker{store: store, control: kept, registry: people, recorder: recorder, signer: outlets.returns, clock: a.clock, logger: a.log}).ready()
	a.background(a.returns.run)
	a.background((&housekeeping{registry: people, clock: a.clock, log: a.log, audit: time.Duration(max(a.config.AuditDays, a.config.Retention)) * 24 * time.Hour}).run)

	mails, err := a.listenInbound(outlets, a.returns)
	if err != nil {
		return err
	}
	traces := &report.Traces{Store: store, Registry: people, Progress: recorder, Queue: queue{hops}, Quotas: &outlets.budgets.quotas, Digests: digestReport{store, people}} // of who must see what is true now
	reports := &reports{
		Traces:  &report.Traces{Store: late, Registry: people, Progress: recorder, Queue: queue{hops}, Quotas: &outlets.budgets.quotas, Digests: digestReport{late, people}},
		version: o.Version, durability: a.config.Durability, started: started, bus: hops, registry: people, store: store, database: db,
		recorder: recorder, outlets: outlets, switches: stops, parking: &parking{store: store, bus: hops, recorder: recorder, claims: outlets.claims, clock: a.clock, still: make(turn, 1)}, floor: floor,
		indexing: history, telling: telling, states: following.states, rates: rates, inbound: mails, returns: a.returns.tally, ready: a.ready, restored: note,
		gathered: &gatheredStatus{report: digestReport{late, people}, clock: a.clock},
	}
	direct := &messages{registry: people, templates: outlets.templates, enclosures: outlets.enclosures, files: filetype.Policy(a.config.AllowAttachments), most: int(a.config.MaxAttachments), collector: collector, recorder: recorder,
		traces: traces, store: store, queue: queue{hops}, floor: floor, clock: a.clock, keeping: new(passage)}
	if err := adminKey(ctx, dir, people); err != nil {
		return err
	}
	asked := known{index: index, registry: people, states: following.states}
	parts := api.Parts{
		States:     asked,
		Secrets:    secrets{people, outlets.hooks},
		Previews:   previews{registry: people, store: store, traces: traces, enclosures: outlets.enclosures, most: int(a.config.MaxAttachments), publicURL: strings.TrimRight(a.config.PublicURL, "/"), clock: a.clock},
		Explaining: &report.Explainer{Traces: reports.Traces, Events: late, Conditions: conditions{people, asked, narrowing}},
		Conditions: &judging{index: index, registry: people, samples: seen, states: asked, people: narrowing, clock: a.clock, matching: make(turn, 1)},
		Keys:       people, Keyring: people, Documents: documents{people, outlets}, Subscriptions: subscriptions{people, floor}, Topics: topics{people, narrowing},
		Intake: intake{collector}, Messages: direct, Reports: reports, Switches: stops, Destinations: &destinations{people, outlets, store, waiting}, Parking: reports.parking, Audit: people,
		Backups: &backups{dir: dir, db: db, bus: hops, version: o.Version, clock: a.clock, copying: copying},
		Ready:   a.ready, Metrics: reports.metrics(), MetricsOpen: a.config.MetricsOpen,
		Limits: limitsOf(&a.config), Origins: a.config.CORSOrigins, Proxies: a.config.Proxies(), AccessLog: a.config.AccessLog,
		Version: o.Version, Now: a.clock.Now, Ahead: a.config.Ahead(), Log: a.log,
	}
	parts.Receipts = &receipts{registry: people, taker: a.returns, clock: a.clock, log: a.log}
	moving := &moves{config: a.config, version: o.Version, db: db, clock: a.clock, log: a.log, copying: copying, floor: floor}
	a.laterDo(moving.Stop)
	parts.Moves, reports.moves = moving, moving
	forgetting := newEraser(reports, copying, direct.keeping)
	a.background(forgetting.run)
	parts.Subscribers, parts.SubscriptionLists, parts.Forgetting, parts.Suppressions = people, people, forgetting, people
	parts.Consents = people
	parts.Merging, parts.Personal = people, &personal{people, traces, store, digestReport{store, people}}
	if outlets.signer != nil {
		passes, err := seal.New(keys.links.bytes)
		if err != nil {
			return err
		}
		mails := &pageMails{messages: direct, registry: people, base: strings.TrimRight(a.config.PublicURL, "/")}
		going := &leaving{signer: outlets.signer, passes: passes, mails: mails, registry: people, store: store, clock: a.clock}
		choices := &preferences{signer: outlets.signer, leaving: going, registry: people, mails: mails, clock: a.clock}
		parts.Leaving, parts.Choices, parts.Seals = going, choices, passes
		parts.Signups = &signups{passes: passes, registry: people, mails: mails, links: choices, clock: a.clock}
	}
	a.serveInbound(mails)
	a.server.Open(api.New(parts))
	a.log.Info("ready", "url", a.URL(), "durability", a.config.Durability, "data", dir, "database", db.about().Where, "took", time.Since(started).Round(time.Millisecond).String())
	return nil
}

// recover learns what an earlier run left open.
func (a *App) recover(ctx context.Context, days []fanfare.Day, store *deliveries.Store, recorder *record.Recorder, stops *switches, waiting *due) error {
	for _, day := range days {
		err := store.Open(ctx, day, func(seq fanfare.EventSeq, messages int64, progress fanfare.Progress) {
			recorder.Begin(fanfare.EventRef{Day: day, Seq: seq}, messages, progress)
		})
		if err != nil {
			return err
		}
		if err := waiting.learn(ctx, day); err != nil {
			return err
		}
	}
	return stops.load(ctx, days)
}

// ready tells whether work is taken.
func (a *App) ready() error {
	if a.draining.Load() {
		return &fanfare.Error{Code: fanfare.Unavailable, Message: "the server is stopping"}
	}
	return a.absence.told()
}

func (a *App) closeServer() error {
	ctx, cancel := context.WithTimeout(context.Background(), a.config.DrainTimeout)
	defer cancel()
	return a.server.Shutdown(ctx)
}

// afterEnd waits until no message for an ended subscription is on the wire.
func (a *App) afterEnd(o *outlets) func(fanfare.Place) {
	return func(place fanfare.Place) {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := o.awaitOff(ctx, place); err != nil {
			a.log.Warn("a subscription ended while a message for it was on the wire of a slow relay", "subscription", fanfare.SubscriptionID(place))
		}
	}
}
