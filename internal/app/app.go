// Package app puts Fanfare together: it opens what is kept, starts the stages
// in the order in which data flows backwards (those that take before those that
// give), and ends them in reverse. It is the only place that names concretes.
package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
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
	"fanfare.dev/fanfare/internal/format"
	"fanfare.dev/fanfare/internal/kit"
	"fanfare.dev/fanfare/internal/match"
	"fanfare.dev/fanfare/internal/record"
	"fanfare.dev/fanfare/internal/registry"
	"fanfare.dev/fanfare/internal/report"
	"fanfare.dev/fanfare/internal/store/sqlite"
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

	server   *api.Server
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
		var errs []error
		for _, undo := range slices.Backward(a.unwind) {
			errs = append(errs, undo())
		}
		a.stopErr = errors.Join(errs...)
	})
	return a.stopErr
}

// defer registers how to undo what was just acquired.
func (a *App) later(undo func() error) { a.unwind = append(a.unwind, undo) }

func (a *App) laterDo(undo func()) { a.later(func() error { undo(); return nil }) }

// background runs a loop until Stop.
func (a *App) background(loops ...func(context.Context)) {
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	for _, loop := range loops {
		running.Go(func() { loop(ctx) })
	}
	a.laterDo(func() { stop(); running.Wait() })
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
	note, err := backup.ReadNote(dir)
	if err != nil {
		return err
	}
	if a.server, err = api.Listen(api.ServerOptions{Address: a.config.Listen, Cert: a.config.TLSCert, Key: a.config.TLSKey, Log: a.log}); err != nil {
		return err
	}
	a.later(a.closeServer)

	durability := sqlite.Durability(a.config.Durability)
	store, err := sqlite.OpenDeliveries(filepath.Join(dir, "deliveries"), durability)
	if err != nil {
		return err
	}
	a.later(store.Close)
	days, err := store.Days()
	if err != nil {
		return err
	}
	highest, err := store.Highest(ctx)
	if err != nil {
		return err
	}

	control, err := sqlite.OpenControl(ctx, filepath.Join(dir, "control.db"), durability)
	if err != nil {
		return err
	}
	index := match.New()
	outlets := &outlets{store: store, claims: newClaims(), lease: a.config.Lease, clock: a.clock, logger: a.log, open: map[uint16]*outlet{}}
	outlets.ctx, outlets.stop = context.WithCancel(context.Background())
	suppressionKey, err := ownKey(dir, suppressionKeyFile)
	if err != nil {
		return err
	}
	people, err := registry.Open(ctx, registry.Options{
		Store: control, Conditions: index, ParseAddress: format.ParseAddress,
		CompileTemplate: compileTemplate, DryRunTemplate: dryRunTemplate,
		AfterEnd: a.afterEnd(outlets), Now: a.clock.Now, SuppressionKey: suppressionKey,
	})
	if err != nil {
		return err
	}
	a.later(people.Close)

	hops, err := bus.Open(ctx, bus.Options{
		Dir: filepath.Join(dir, busDir), URL: a.config.NATS, Sync: a.config.Fsync(), Lease: a.config.Lease,
		FirstSeq: firstGroup(highest, note), Logger: a.log,
	})
	if err != nil {
		return err
	}
	a.later(hops.Close)
	if note.New() {
		restored := restoring{dir: dir, note: note, store: store, registry: people, bus: hops}
		if err := restored.finish(ctx, days, firstGroup(highest, note)); err != nil {
			return err
		}
		a.log.Warn("restored, and everything is paused", "backup", note.Backup, "broadcasts", note.Broadcasts, "unsettled", note.Deliveries, "unmatched", note.Unmatched)
	}

	waiting := newDue(store, hops, a.clock, a.log)
	stops := &switches{registry: people, store: store, clock: a.clock, resumed: waiting.resume}
	recorder := record.Start(record.Options{
		Store: store, Clock: a.clock, Logger: a.log, Due: waiting.tell,
		Sour: func(ref fanfare.EventRef) {
			if err := stops.pauseSour(context.Background(), ref); err != nil {
				a.log.Error("a broadcast that only fails could not be paused", "event", ref.String(), "error", err)
			}
		},
	})
	a.laterDo(recorder.Stop)
	stops.recorder = recorder
	if err := a.recover(ctx, days, store, recorder, stops, waiting); err != nil {
		return err
	}

	key, err := ownKey(dir, linkKeyFile)
	if err != nil {
		return err
	}
	if a.config.PublicURL != "" {
		if outlets.signer, err = format.NewSigner(a.config.PublicURL, key); err != nil {
			return err
		}
	}
	outlets.bus, outlets.registry, outlets.recorder, outlets.switches = hops, people, recorder, stops
	outlets.templates, outlets.memory = &templates{registry: people}, newMemory()
	if err := outlets.reconcile(ctx); err != nil {
		return err
	}
	a.laterDo(func() { outlets.drain(a.config.DrainTimeout) })

	history := &indexing{store: store, recorder: recorder, clock: a.clock, logger: a.log, retention: time.Duration(a.config.Retention) * 24 * time.Hour}
	if err := history.sweep(ctx); err != nil {
		return err
	}
	rates := &rates{recorder: recorder, outlets: outlets}
	a.background(waiting.run, history.run, history.merge, rates.run)
	for _, lane := range fanfare.Lanes {
		queue, err := hops.Events(ctx, lane)
		if err != nil {
			return err
		}
		m := &matching{queue: queue, bus: hops, index: index, registry: people, store: store, recorder: recorder, clock: a.clock, logger: a.log}
		a.background(m.run)
	}

	floor := &diskFloor{dir: dir, floor: a.config.DiskFloor}
	collector := collect.Start(collect.Options{Log: hops, Topics: topics{people}, Clock: a.clock, Floor: floor.Check})
	a.laterDo(collector.Stop)
	err = hops.ReplayEvents(ctx, a.clock.Now().Add(-collect.Horizon), func(seq uint64, _ time.Time, group []byte) error {
		events, err := collect.Decode(group, seq)
		collector.Remember(events)
		return err
	})
	if err != nil {
		return fmt.Errorf("known ids: %w", err)
	}
	a.background(func(ctx context.Context) { trim(ctx, hops, a.clock, a.log) })
	a.background((&housekeeping{registry: people, clock: a.clock, log: a.log, audit: time.Duration(max(a.config.AuditDays, a.config.Retention)) * 24 * time.Hour}).run)

	reports := &reports{
		Traces:  &report.Traces{Store: store, Registry: people, Progress: recorder, Queue: queue{hops}},
		version: o.Version, durability: a.config.Durability, started: started, bus: hops, registry: people, store: store,
		recorder: recorder, outlets: outlets, switches: stops, parking: &parking{store: store, bus: hops, recorder: recorder, claims: outlets.claims, clock: a.clock, still: make(turn, 1)}, floor: floor,
		indexing: history, rates: rates, ready: a.ready, restored: note,
	}
	direct := &messages{registry: people, templates: outlets.templates, collector: collector, recorder: recorder,
		traces: reports.Traces, store: store, queue: queue{hops}, floor: floor, clock: a.clock, keeping: new(passage)}
	if err := adminKey(ctx, dir, people); err != nil {
		return err
	}
	copying := make(turn, 1)
	parts := api.Parts{
		Previews:   previews{registry: people, store: store, traces: reports.Traces, publicURL: strings.TrimRight(a.config.PublicURL, "/"), clock: a.clock},
		Explaining: &report.Explainer{Traces: reports.Traces, Events: store, Conditions: conditions{people, index}},
		Keys:       people, Keyring: people, Documents: documents{people, outlets}, Subscriptions: subscriptions{people, floor}, Topics: people,
		Intake: intake{collector}, Messages: direct, Reports: reports, Switches: stops, Parking: reports.parking, Audit: people,
		Backups: &backups{dir: dir, bus: hops, version: o.Version, clock: a.clock, copying: copying},
		Ready:   a.ready, Metrics: reports.metrics(), MetricsOpen: a.config.MetricsOpen,
		Limits: limitsOf(&a.config), Origins: a.config.CORSOrigins, Proxies: a.config.Proxies(), AccessLog: a.config.AccessLog,
		Version: o.Version, Now: a.clock.Now, Log: a.log,
	}
	forgetting := newEraser(reports, copying, direct.keeping)
	a.background(forgetting.run)
	parts.Subscribers, parts.SubscriptionLists, parts.Forgetting, parts.Suppressions = people, people, forgetting, people
	parts.Merging, parts.Personal = people, &personal{people, reports.Traces, store}
	if outlets.signer != nil {
		parts.Unsubscribe = (&unsubscriber{signer: outlets.signer, registry: people, store: store}).Unsubscribe
	}
	a.server.Open(api.New(parts))
	a.log.Info("ready", "url", a.URL(), "durability", a.config.Durability, "data", dir, "took", time.Since(started).Round(time.Millisecond).String())
	return nil
}

// recover learns what an earlier run left open.
func (a *App) recover(ctx context.Context, days []fanfare.Day, store *sqlite.Deliveries, recorder *record.Recorder, stops *switches, waiting *due) error {
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
	return nil
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

// trim forgets events that are matched and older than intake needs to know.
func trim(ctx context.Context, hops *bus.Bus, clock kit.Clock, log *slog.Logger) {
	ticker := time.NewTicker(5 * time.Minute)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if err := hops.TrimEvents(ctx, clock.Now().Add(-collect.Horizon)); err != nil && ctx.Err() == nil {
			log.Warn("old events could not be forgotten, it is tried again", "error", err)
		}
	}
}

func compileTemplate(src *registry.TemplateSource) error {
	_, err := format.Compile(sourceOf(src))
	return err
}

func dryRunTemplate(src *registry.TemplateSource, schema json.RawMessage, params map[string]string) error {
	t, err := format.Compile(sourceOf(src))
	if err != nil {
		return err
	}
	var names []string
	for name := range params {
		names = append(names, name)
	}
	if err := t.Check(schema, names); err != nil {
		return err
	}
	_, _, _, err = t.DryRun(schema)
	return err
}

func sourceOf(src *registry.TemplateSource) format.Source {
	return format.Source{Name: src.Name, Version: src.Version, Subject: src.Subject, Text: src.Text, HTML: src.HTML}
}
