package bus

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"fanfare.dev/fanfare"
)

// A host is the NATS server inside this process. After a write fails, a NATS server stops writing, so the host replaces it
// with a new one when there is space. Acknowledged data is in its files, and clients reconnect.
type host struct {
	dir     string
	options *server.Options
	log     *slog.Logger
	failed  chan struct{}                 // holds one token when a write has failed
	broken  atomic.Pointer[fanfare.Error] // why nothing can be stored, from a failed write until the server is replaced

	mu     sync.Mutex
	server *server.Server
}

const (
	// maxStoreBytes disables the server's own limit, which is three quarters of the space that
	// is free at its start: the disk floor limits the store instead.
	maxStoreBytes = 1 << 50
	// minFreeBytes is the free space that a new server needs; it is checked every
	// spaceCheckInterval.
	minFreeBytes       = 4 << 20
	spaceCheckInterval = 250 * time.Millisecond
	// reconnectEvery is the interval at which the connections retry in the meantime.
	reconnectEvery = 20 * time.Millisecond
)

// serverOptions returns the options of a server that stores its data in a directory.
func serverOptions(dir string, sync bool) *server.Options {
	return &server.Options{
		ServerName:        "fanfare",
		JetStream:         true,
		JetStreamMaxStore: maxStoreBytes,
		StoreDir:          dir,
		SyncAlways:        sync,
		NoSigs:            true,
		NoLog:             true,

		DisableJetStreamBanner: true,
	}
}

// startAlone starts a server that is not a member of a cluster, and that has no network port.
func startAlone(dir string, sync bool, log *slog.Logger) (*host, error) {
	options := serverOptions(dir, sync)
	options.DontListen = true
	return startHost(options, log)
}

func startHost(options *server.Options, log *slog.Logger) (*host, error) {
	h := &host{dir: options.StoreDir, options: options, log: log, failed: make(chan struct{}, 1)}
	return h, h.start()
}

func (h *host) start() error {
	if !isMissing(h.dir) {
		if err := repairFiles(h.dir, h.options.Cluster.Name == "", h.log); err != nil {
			return fmt.Errorf("embedded NATS: %w", err)
		}
	}
	if h.options.SyncAlways {
		if err := resync(h.dir); err != nil {
			return fmt.Errorf("embedded NATS: %w", err)
		}
	}
	s, err := server.NewServer(h.options.Clone()) // the server changes its options
	if err != nil {
		return fmt.Errorf("embedded NATS: %w", err)
	}
	found := &rebuilt{}
	s.SetLoggerV2(serverLog{log: h.log, failed: h.fail, rebuilt: found}, false, false, false)
	s.Start()
	if !s.ReadyForConnections(20 * time.Second) {
		s.Shutdown()
		return errors.New("embedded NATS did not start within 20 s" + h.unboundRoutes())
	}
	found.tell(h.log, s)
	h.mu.Lock()
	h.server = s
	h.mu.Unlock()
	return nil
}

// unboundRoutes returns the likely reason for which the server of a member does not start.
func (h *host) unboundRoutes() string {
	if h.options.Cluster.Port == 0 {
		return ""
	}
	return fmt.Sprintf(": another program may be using %s:%d, or this machine does not have that address: check cluster_listen", h.options.Cluster.Host, h.options.Cluster.Port)
}

// current returns the current server; nil before it has started.
func (h *host) current() *server.Server {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.server
}

// InProcessConn connects to the current server.
func (h *host) InProcessConn() (net.Conn, error) { return h.current().InProcessConn() }

// connect opens a connection inside this process.
func (h *host) connect(options ...nats.Option) (*nats.Conn, error) {
	return nats.Connect("", append(options, nats.InProcessServer(h), nats.MaxReconnects(-1), nats.ReconnectWait(reconnectEvery), nats.ReconnectBufSize(-1))...)
}

func (h *host) stop() {
	if s := h.current(); s != nil {
		s.Shutdown()
		s.WaitForShutdown()
	}
}

var errFull = &fanfare.Error{Code: fanfare.DiskFull, Message: "the disk that contains the data directory is full", Hint: "free up some space; the server then resumes automatically"}

// fail records that the server can no longer write.
func (h *host) fail(text string) {
	reason := errFull
	if strings.Contains(text, syscall.EIO.Error()) {
		reason = &fanfare.Error{Code: fanfare.Unavailable, Message: "the disk that contains the data directory reports errors; nothing was stored", Hint: "check the disk; the server resumes automatically when it can write"}
	}
	h.broken.Store(reason)
	select {
	case h.failed <- struct{}{}:
	default:
	}
}

// revive replaces the server after each failed write, as soon as the disk has space.
func (h *host) revive(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-h.failed:
		}
		h.log.Error("the bus cannot write to its disk; the server refuses events until it can", "dir", h.dir, "error", h.full())
		for again := true; again; {
			select {
			case <-ctx.Done():
				return
			case <-time.After(spaceCheckInterval):
			}
			if !h.hasSpace() {
				continue
			}
			h.stop()
			select {
			case <-h.failed: // sent when the previous server stopped
			default:
			}
			reason := h.broken.Swap(nil)
			err := h.start()
			if again = err != nil; again {
				h.broken.Store(reason)
				h.log.Error("cannot restart the bus; retrying", "error", err)
			}
		}
		h.log.Info("the bus can write again")
	}
}

func (h *host) hasSpace() bool {
	var stat syscall.Statfs_t
	err := syscall.Statfs(h.dir, &stat)
	return err == nil && int64(stat.Bavail)*stat.Bsize >= minFreeBytes
}

// full returns the error to report while nothing can be stored; nil if the server can write.
func (h *host) full() error {
	if h == nil {
		return nil
	}
	if reason := h.broken.Load(); reason != nil {
		return reason
	}
	return nil
}

// usual begins the warnings that a member of a cluster logs at each start or stop. Its password and the secret of the routes
// are in no file; the member itself logs how many servers it reaches.
var usual = []string{
	"Plaintext passwords detected", "Waiting for routing to be established", "JetStream has not established contact with a meta leader", "Metalayer blocking snapshot",
}

// serverLog passes on the warnings and errors of the embedded server, except those about an index
// that it rebuilds. It reports a failed write, because the server reports it nowhere else.
type serverLog struct {
	log     *slog.Logger
	failed  func(text string)
	rebuilt *rebuilt
}

func (l serverLog) Noticef(string, ...any) {}
func (l serverLog) Debugf(string, ...any)  {}
func (l serverLog) Tracef(string, ...any)  {}
func (l serverLog) Warnf(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if l.rebuilt.note(text) {
		return
	}
	level := slog.LevelWarn
	if slices.ContainsFunc(usual, func(begin string) bool { return strings.HasPrefix(text, begin) }) {
		level = slog.LevelDebug
	}
	l.log.Log(context.Background(), level, "bus: "+text)
}

func (l serverLog) Errorf(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if strings.HasPrefix(text, "Error trying to connect to route") { // once a second; the member logs how many servers it reaches
		l.log.Debug("bus: " + text)
		return
	}
	l.log.Error("bus: " + text)
	if strings.Contains(text, "Critical write error") || strings.Contains(text, "out of resources") || strings.Contains(text, syscall.ENOSPC.Error()) {
		l.failed(text)
	}
}

func (l serverLog) Fatalf(format string, args ...any) {
	l.log.Error("bus: " + fmt.Sprintf(format, args...))
}
