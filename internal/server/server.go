// Package server starts and stops Fanfare: it opens the database and the bus, starts the stages, each before those that
// pass work to it, serves the API, and stops everything in reverse order. It is the only package that names the concrete
// types of all components.
//
//	server.go    Start and Stop
//	start.go     the components in start order
//	bus.go       the bus, and the embedded NATS server of a node
//	sessions.go  the broker of sessions, and the hub of agents
//	listen.go    the API, the recipient pages and inbound mail
//	compat.go    the APIs for clients of other systems
//	mail.go      mailboxes for mail programs; node_mail.go: on each node of a cluster
//	cluster.go   nodes of a cluster: waiting for the lease, leading, stepping down
//	database.go  waiting for an unreachable database
//	adapters.go  adapters between components
package server

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/admin/backup"
	"fanfare.dev/fanfare/internal/bus"
	"fanfare.dev/fanfare/internal/clock"
	"fanfare.dev/fanfare/internal/config"
	"fanfare.dev/fanfare/internal/datadir"
	"fanfare.dev/fanfare/internal/durablefile"
	"fanfare.dev/fanfare/internal/httpapi"
	"fanfare.dev/fanfare/internal/httpapi/listener"
	"fanfare.dev/fanfare/internal/mail/feedback"
	"fanfare.dev/fanfare/internal/progress"
	"fanfare.dev/fanfare/internal/signin/oidc"
	"fanfare.dev/fanfare/internal/store/database"
)

const (
	// requestPatience is the maximum time that a stop waits for requests before it closes the components that they use.
	requestPatience = 5 * time.Second
	// stopPatience is how long, after drain_timeout, a stop waits for an unreachable database.
	stopPatience = 5 * time.Second
	// endPatience is how long the end of a subscription waits for a message to it that is being sent.
	endPatience = 10 * time.Second
)

// Options are settings from the command line that are not in the configuration.
type Options struct {
	Version string
	Logger  *slog.Logger
}

// Server is a running server.
type Server struct {
	config  config.Config
	issuers *oidc.Settings // of OpenID Connect
	log     *slog.Logger
	clock   clock.Clock

	progress progress.Reporter
	outage   *database.Outage // outage of the database; nil before it is open
	giveUp   func() error     // closes an unreachable database; nil before it is open
	leaveBus func() error     // closes the bus; nil before it is open
	api      *listener.Server
	notifybc *notifybcListener // nil: the server does not offer the NotifyBC API
	compat   compatListeners
	node     *node       // nil: this server is alone
	nats     *bus.Member // nil: no embedded NATS server, or one that is alone and belongs to the components
	feedback *feedback.Processor
	cleanups []func() error // run in reverse order
	draining atomic.Bool
	stopping chan struct{} // closed when the server stops
	stopOnce sync.Once
	stopErr  error
}

// Start starts a server, and returns when the API is ready.
func Start(ctx context.Context, c config.Config, o Options) (*Server, error) {
	s := &Server{config: c, issuers: &oidc.Settings{}, log: o.Logger, clock: clock.System{}, stopping: make(chan struct{})}
	if err := s.start(ctx, o); err != nil {
		return nil, errors.Join(err, s.Stop())
	}
	return s, nil
}

// URL returns the address of the API.
func (s *Server) URL() string {
	scheme := "http"
	if s.config.TLSCert != "" {
		scheme = "https"
	}
	return scheme + "://" + s.api.Addr().String()
}

// Done returns a channel that is closed when the API has ended.
func (s *Server) Done() <-chan struct{} { return s.api.Done() }

// Stop accepts nothing new, finishes the messages that are being sent, and closes everything. The next start resumes
// the rest. A second call waits for the first.
func (s *Server) Stop() error {
	s.stopOnce.Do(func() {
		s.draining.Store(true)
		close(s.stopping)
		if s.node != nil {
			s.node.stop()
		}
		s.stopErr = s.cleanUp(0, s.config.DrainTimeout+stopPatience)
	})
	return s.stopErr
}

// WriteOpenAPI writes the description of the API without starting a server.
func WriteOpenAPI(w io.Writer, version string) error { return httpapi.WriteOpenAPI(w, version) }

// readIssuers reads the file with the issuers of OpenID Connect, if there is one.
func (s *Server) readIssuers() (err error) {
	if s.config.OIDC != "" {
		s.issuers, err = oidc.ReadFile(s.config.OIDC, oidc.Sources{ReadFile: os.ReadFile, LookupEnv: os.LookupEnv})
	}
	return err
}

// start locks the data directory, binds the address of the API, and starts all components. Until they have started, the
// API responds that the server is starting.
func (s *Server) start(ctx context.Context, o Options) error {
	started := s.clock.Now()
	dir := s.config.DataDir
	if err := s.readIssuers(); err != nil {
		return err
	}
	if err := durablefile.MakeDir(dir, 0o700); err != nil {
		return datadir.Unusable(err)
	}
	unlock, err := datadir.Lock(dir)
	if err != nil {
		return err
	}
	s.onStop(unlock)
	if err := backup.Interrupted(dir); err != nil {
		return err
	}
	if err := s.listenNotifyBC(); err != nil {
		return err
	}
	if s.api, err = listener.Listen(listener.Options{Address: s.config.Listen, Cert: s.config.TLSCert, Key: s.config.TLSKey, Log: s.log, Progress: s.progress.Now}); err != nil {
		return err
	}
	s.onStop(s.shutDownAPI)
	if err := s.listenCompat(); err != nil {
		return err
	}
	starting, stop := context.WithCancel(ctx)
	defer stop()
	go s.progress.Run(starting, s.log)
	if s.config.Clustered() {
		return s.join(ctx, o)
	}
	return s.withDatabase(ctx, func() error { return s.startComponents(ctx, o, started, nil) })
}

// ready returns why the server does not accept work, or nil.
func (s *Server) ready() error {
	if s.draining.Load() {
		return &fanfare.Error{Code: fanfare.Unavailable, Message: "the server is stopping"}
	}
	if err := s.outage.Ready(); err != nil || s.nats == nil {
		return err
	}
	return s.nats.Ready()
}

func (s *Server) shutDownAPI() error {
	ctx, cancel := context.WithTimeout(context.Background(), s.config.DrainTimeout)
	defer cancel()
	return s.api.Shutdown(ctx)
}

// onStop registers the cleanup of a component that was just started.
func (s *Server) onStop(cleanup func() error) { s.cleanups = append(s.cleanups, cleanup) }

// onStopDo registers a cleanup that cannot fail.
func (s *Server) onStopDo(cleanup func()) { s.onStop(func() error { cleanup(); return nil }) }

// background runs loops until Stop.
func (s *Server) background(loops ...func(context.Context)) {
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	for _, loop := range loops {
		running.Go(func() { loop(ctx) })
	}
	s.onStopDo(func() { stop(); running.Wait() })
}

// cleanUp runs all cleanups after the first keep ones, the newest first. After patience, it
// closes an unreachable database.
func (s *Server) cleanUp(keep int, patience time.Duration) error {
	if s.giveUp != nil {
		defer time.AfterFunc(patience, func() { _ = s.giveUp() }).Stop() // a cleanup closes the database again and returns the error
	}
	var errs []error
	for _, cleanup := range slices.Backward(s.cleanups[keep:]) {
		errs = append(errs, cleanup())
	}
	s.cleanups = s.cleanups[:keep]
	return errors.Join(errs...)
}
