package sink

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
)

// A Server receives mail and webhooks. Its methods are safe for concurrent use.
type Server struct {
	cfg        Config
	faults     *faultInjector
	hosts      *hosts
	verifiers  []verificationKey // nil: signatures are not verified
	counters   counters
	deliveries *deliveryCounts
	samples    *samples
	recorder   *recorder // nil: no record

	rateMu     sync.Mutex
	rateWindow *slidingWindow // nil: no rate

	mu             sync.Mutex
	listener       net.Listener
	web            *http.Server // nil: no HTTP
	webListener    net.Listener
	webConnections atomic.Int64
	open           map[net.Conn]struct{}
	closing        chan struct{}
	closed         bool
	handlers       sync.WaitGroup
	closeErr       error
	once           sync.Once
}

// New returns a server for a valid Config.
func New(cfg Config) *Server {
	s := &Server{
		cfg: cfg.withDefaults(), deliveries: newCensus(), samples: newSamples(cfg.KeepFirst, cfg.KeepLast),
		open: make(map[net.Conn]struct{}), closing: make(chan struct{}),
	}
	s.faults, s.hosts = newFaultInjector(s.cfg.Inject), newHosts(cfg.Hosts)
	s.verifiers, _ = parseKeys(cfg.Secrets) // the Config is valid
	if cfg.Above > 0 {
		s.rateWindow = newWindow(cfg.Above)
	}
	if cfg.Record != nil {
		s.recorder = newRecorder(cfg.Record, cfg.RecordSync)
	}
	return s
}

// Listen binds addr (host:port, port 0 for any) and returns the address.
func (s *Server) Listen(addr string) (net.Addr, error) {
	l, err := new(net.ListenConfig).Listen(context.Background(), "tcp", addr)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.listener != nil {
		_ = l.Close()
		return nil, errors.New("the sink is already listening or is closed")
	}
	s.listener = l
	return l.Addr(), nil
}

// Serve accepts mail and requests until Close; then it returns nil. Call Listen or
// ListenHTTP, or both, before.
func (s *Server) Serve() error {
	s.mu.Lock()
	mail, web := s.listener, s.webListener
	s.mu.Unlock()
	switch {
	case mail == nil && web == nil:
		return errors.New("the sink is not listening yet")
	case mail == nil:
		return s.serveHTTP()
	case web == nil:
		return s.serveMail(mail)
	}
	served := make(chan error, 2)
	go func() { served <- s.serveHTTP() }()
	go func() { served <- s.serveMail(mail) }()
	err := <-served
	return errors.Join(err, s.Close(), <-served)
}

func (s *Server) serveMail(l net.Listener) error {
	for {
		nc, err := l.Accept()
		if err != nil {
			select {
			case <-s.closing:
				return nil
			default:
				return err
			}
		}
		if !s.register(nc) {
			_, _ = nc.Write([]byte("421 4.3.2 too many connections\r\n"))
			_ = nc.Close()
			continue
		}
		go func() {
			defer s.unregister(nc)
			newSession(s, nc).run()
		}()
	}
}

func (s *Server) register(nc net.Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || len(s.open) >= s.cfg.MaxConnections {
		return false
	}
	s.open[nc] = struct{}{}
	s.handlers.Add(1)
	s.counters.connected.Add(1)
	return true
}

func (s *Server) unregister(nc net.Conn) {
	_ = nc.Close()
	s.mu.Lock()
	delete(s.open, nc)
	s.mu.Unlock()
	s.handlers.Done()
}

// Close closes all connections, waits for their handlers, and flushes the record. Further
// calls wait for the first and return its error.
func (s *Server) Close() error {
	s.once.Do(func() {
		s.mu.Lock()
		s.closed = true
		close(s.closing)
		if s.listener != nil {
			_ = s.listener.Close()
		}
		for nc := range s.open {
			_ = nc.Close()
		}
		web := s.web
		s.mu.Unlock()
		if web != nil {
			shutdownHTTP(web)
		}
		s.handlers.Wait()
		if s.recorder != nil {
			s.closeErr = s.recorder.close()
		}
	})
	return s.closeErr
}

// Stats returns the counts so far.
func (s *Server) Stats() Summary {
	sum := s.counters.summary()
	sum.Hosts = s.hosts.summary()
	return sum
}

// Seen returns how often a recipient got a message of an event.
func (s *Server) Seen(event, recipient string) int {
	return s.deliveries.seen(deliveryHash([]byte(event), []byte(recipient)))
}

// Messages returns the messages that KeepFirst and KeepLast have kept, the oldest first.
func (s *Server) Messages() []Message { return s.samples.messages() }
