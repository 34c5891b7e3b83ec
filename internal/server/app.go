// Package app puts Fanfare together: it opens what is kept, starts the stages
// in the order in which data flows backwards (those that take before those that
// give), and ends them in reverse. It is the only place that names concretes.
package server

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/admin/backup"
	"fanfare.dev/fanfare/internal/clock"
	"fanfare.dev/fanfare/internal/condition"
	"fanfare.dev/fanfare/internal/config"
	"fanfare.dev/fanfare/internal/ctxlock"
	"fanfare.dev/fanfare/internal/datadir"
	"fanfare.dev/fanfare/internal/httpapi"
	"fanfare.dev/fanfare/internal/mail/bounce"
	"fanfare.dev/fanfare/internal/mail/feedback"
	"fanfare.dev/fanfare/internal/pipeline/deliver/channels"
	"fanfare.dev/fanfare/internal/store/database"
)

const (
	// requestPatience is how long a stop waits at most for requests before it closes what they use.
	requestPatience = 5 * time.Second
	// stopPatience is how long, after drain_timeout, a stop waits for a database that cannot be reached.
	stopPatience = 5 * time.Second
)

// Options are what the command line adds to the configuration.
type Options struct {
	Version string
	Logger  *slog.Logger
}

// App is a running Fanfare.
type App struct {
	config config.Config
	log    *slog.Logger
	clock  clock.Clock

	outage   *database.Outage // of the database; nil before it is open
	giveUp   func() error     // closes a database that cannot be reached; nil for files
	server   *httpapi.Server
	feedback *feedback.Processor
	unwind   []func() error // in reverse order of what was acquired
	draining atomic.Bool
	stopOnce sync.Once
	stopErr  error
}

// Start opens everything and returns when the API answers.
func Start(ctx context.Context, c config.Config, o Options) (*App, error) {
	a := &App{config: c, log: o.Logger, clock: clock.System{}}
	if err := a.start(ctx, o); err != nil {
		return nil, errors.Join(err, a.Stop())
	}
	return a, nil
}

// Take processes an arrival; see feedback.Processor.Take.
func (a *App) Take(ctx context.Context, arrival bounce.Arrival) error {
	return a.feedback.Take(ctx, arrival)
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
		return datadir.Unusable(err)
	}
	unlock, err := datadir.Lock(dir)
	if err != nil {
		return err
	}
	a.later(unlock)
	if err := backup.Interrupted(dir); err != nil {
		return err
	}
	if a.server, err = httpapi.Listen(httpapi.ServerOptions{Address: a.config.Listen, Cert: a.config.TLSCert, Key: a.config.TLSKey, Log: a.log}); err != nil {
		return err
	}
	a.later(a.closeServer)
	return a.reach(ctx, func() error { return a.open(ctx, o, started) })
}

// open opens everything that is kept, and begins to work.
func (a *App) open(ctx context.Context, o Options, started time.Time) error {
	h := &house{App: a, version: o.Version, started: started, dir: a.config.DataDir, index: condition.New(), copying: ctxlock.New()}
	for _, build := range []func(context.Context) error{
		h.openStore, h.openRegistry, h.openBus, h.openRecord, h.openOutlets, h.openStates, h.openVerifier, h.openMatching, h.openIntake, h.openReturns, h.openDoors,
	} {
		if err := build(ctx); err != nil {
			return err
		}
	}
	return nil
}

// ready tells whether work is taken.
func (a *App) ready() error {
	if a.draining.Load() {
		return &fanfare.Error{Code: fanfare.Unavailable, Message: "the server is stopping"}
	}
	return a.outage.Ready()
}

func (a *App) closeServer() error {
	ctx, cancel := context.WithTimeout(context.Background(), a.config.DrainTimeout)
	defer cancel()
	return a.server.Shutdown(ctx)
}

// afterEnd waits until no message for an ended subscription is on the wire.
func (a *App) afterEnd(c *channels.Channels) func(fanfare.RowID) {
	return func(place fanfare.RowID) {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := c.AwaitOff(ctx, place); err != nil {
			a.log.Warn("a subscription ended while a message for it was on the wire of a slow relay", "subscription", fanfare.SubscriptionID(place))
		}
	}
}
