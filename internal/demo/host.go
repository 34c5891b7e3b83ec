package demo

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/client"
	"fanfare.dev/fanfare/internal/config"
	"fanfare.dev/fanfare/internal/server"
	"fanfare.dev/fanfare/internal/sink"
	"fanfare.dev/fanfare/internal/store/database"
)

// A host is the server and its capture server, both in this process.
type host struct {
	example *example

	app   *server.Server
	api   *client.Client // with the admin key, like a local command
	sink  *sink.Server
	relay string // address of the capture server
	kept  *samples

	dir       string // data directory
	temporary bool
	schema    string // URL of a PostgreSQL schema, or ""
	served    chan error
}

// raise starts both servers. After a failure it releases everything that it has acquired.
func raise(ctx context.Context, x *example, o Options, log *slog.Logger, show *screen) (*host, error) {
	s := show.begin(ctx, "start", "", 0)
	h := &host{example: x, kept: newSamples(x.near), served: make(chan error, 1)}
	listen, err := h.start(ctx, o, log)
	if err != nil {
		s.drop()
		return nil, errors.Join(err, h.fall())
	}
	s.end("API %s, capture server %s", listen, h.relay)
	for _, wish := range [][2]string{{o.Listen, listen}, {o.SMTP, h.relay}} {
		if wish[0] != wish[1] && !strings.HasSuffix(wish[0], ":0") {
			show.say("           (%s is in use by another program)", wish[0])
		}
	}
	return h, nil
}

func (h *host) start(ctx context.Context, o Options, log *slog.Logger) (listen string, err error) {
	if h.dir, h.temporary, err = dataDir(o.DataDir); err != nil {
		return "", err
	}
	h.sink = sink.New(sink.Config{OnMessage: h.kept.see})
	smtp, err := freeAddress(ctx, o.SMTP)
	if err != nil {
		return "", err
	}
	relay, err := h.sink.Listen(smtp)
	if err != nil {
		return "", err
	}
	h.relay = relay.String()
	go func() { h.served <- h.sink.Serve() }()

	if listen, err = freeAddress(ctx, o.Listen); err != nil {
		return "", err
	}
	settings := config.Config{
		DataDir: h.dir, Listen: listen, PublicURL: "http://" + reachable(listen), Durability: "fsync",
		DiskFloor: config.DiskFloor{Percent: 5, SizeBytes: 1_000_000_000}, Lease: 90 * time.Second, Retention: 30,
		DrainTimeout: 10 * time.Second,
	}
	if o.DB != "" {
		if h.schema, err = database.OwnSchema(o.DB, "demo_"+strings.ToLower(rand.Text())); err != nil {
			return "", err
		}
		settings.DB, settings.DBConnections, settings.DBStatementTimeout = h.schema, 16, time.Minute
	}
	if h.app, err = server.Start(ctx, settings, server.Options{Version: o.Version, Logger: log}); err != nil {
		return "", err
	}
	key, err := os.ReadFile(h.keyFile())
	if err != nil {
		return "", err
	}
	admin, err := client.New(settings.PublicURL, strings.TrimSpace(string(key)))
	if err != nil {
		return "", err
	}
	h.api = admin.ForService(h.example.name)
	return listen, nil
}

// fall stops both servers and removes temporary data.
func (h *host) fall() error {
	var errs []error
	if h.app != nil {
		errs = append(errs, h.app.Stop())
	}
	if h.sink != nil {
		errs = append(errs, h.sink.Close())
	}
	if h.relay != "" {
		errs = append(errs, <-h.served)
	}
	if h.schema != "" {
		errs = append(errs, database.DropSchema(context.Background(), h.schema))
	}
	if h.temporary {
		errs = append(errs, os.RemoveAll(h.dir))
	}
	return errors.Join(errs...)
}

func (h *host) keyFile() string { return filepath.Join(h.dir, "admin.key") }

// dataDir returns an empty folder.
func dataDir(named string) (dir string, temporary bool, err error) {
	if named == "" {
		dir, err = os.MkdirTemp("", "fanfare-demo-")
		return dir, err == nil, err
	}
	return named, false, mustBeEmpty(named)
}

// mustBeEmpty returns an error if a folder is not empty.
func mustBeEmpty(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if len(entries) > 0 {
		return &fanfare.Error{Code: fanfare.Conflict, Message: dir + " is not empty, but the demo needs an empty directory",
			Hint: "pass a directory that does not exist; to serve the data of an earlier demo, run fanfare serve --data-dir " + dir}
	}
	return nil
}

// freeAddress returns the address if it is free, and otherwise the same host with a free port. The
// port must be known before the server listens, because the links in mails contain it.
func freeAddress(ctx context.Context, address string) (string, error) {
	var config net.ListenConfig
	l, err := config.Listen(ctx, "tcp", address)
	if errors.Is(err, syscall.EADDRINUSE) {
		host, _, _ := net.SplitHostPort(address)
		l, err = config.Listen(ctx, "tcp", net.JoinHostPort(host, "0"))
	}
	if err != nil {
		return "", &fanfare.Error{Code: fanfare.Invalid, Message: fmt.Sprintf("cannot listen on %s: %v", address, err), Hint: "use host:port, such as 127.0.0.1:8085"}
	}
	return l.Addr().String(), l.Close()
}

// reachable returns the address at which this machine reaches a server that listens at listen.
func reachable(listen string) string {
	host, port, err := net.SplitHostPort(listen)
	if ip := net.ParseIP(host); err == nil && (host == "" || ip != nil && ip.IsUnspecified()) {
		return net.JoinHostPort("127.0.0.1", port)
	}
	return listen
}
