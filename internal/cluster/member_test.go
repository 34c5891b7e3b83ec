package cluster

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/store/postgres"
)

// A tables is the tables of a cluster in memory, with its own clock. A node that is cut off gets an error.
type tables struct {
	mu    sync.Mutex
	lease postgres.Holder
	until time.Time
	nodes map[string]postgres.Node
}

var errCut = errors.New("connection refused")

// A side is the connection of one node to the tables.
type side struct {
	*tables
	cut bool // the node cannot reach the tables
}

func (s *side) do(fn func() error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cut {
		return errCut
	}
	return fn()
}

func (s *side) setCut(cut bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cut = cut
}

func (s *side) Register(_ context.Context, n *postgres.Node, ttl time.Duration) error {
	return s.do(func() error {
		if old, ok := s.nodes[n.Name]; ok && old.Instance != n.Instance && time.Since(old.Seen) < ttl {
			return &fanfare.Error{Code: fanfare.Conflict, Message: "taken"}
		}
		n.Seen = time.Now()
		s.nodes[n.Name] = *n
		return nil
	})
}

func (s *side) Heartbeat(_ context.Context, name string, _ int64, _ time.Time) error {
	return s.do(func() error {
		n := s.nodes[name]
		n.Seen = time.Now()
		s.nodes[name] = n
		return nil
	})
}

func (s *side) Leave(_ context.Context, name string, _ int64) error {
	return s.do(func() error { delete(s.nodes, name); return nil })
}

func (s *side) Holder(context.Context, string) (h postgres.Holder, err error) {
	err = s.do(func() error {
		h = s.lease
		h.Held = time.Now().Before(s.until)
		h.URL = s.nodes[h.Node].URL
		return nil
	})
	return h, err
}

func (s *side) Acquire(_ context.Context, _, node string, length time.Duration) (epoch int64, err error) {
	err = s.do(func() error {
		if time.Now().Before(s.until) {
			return nil
		}
		s.lease = postgres.Holder{Node: node, Epoch: s.lease.Epoch + 1}
		s.until = time.Now().Add(length)
		epoch = s.lease.Epoch
		return nil
	})
	return epoch, err
}

func (s *side) Renew(_ context.Context, _, node string, epoch int64, length time.Duration) (held bool, err error) {
	err = s.do(func() error {
		if held = s.lease.Node == node && s.lease.Epoch == epoch; held {
			s.until = time.Now().Add(length)
		}
		return nil
	})
	return held, err
}

func (s *side) Release(ctx context.Context, lease, node string, epoch int64) error {
	_, err := s.Renew(ctx, lease, node, epoch, 0)
	return err
}

func (s *side) Nodes(context.Context, time.Duration) (list []postgres.Node, err error) {
	err = s.do(func() error {
		for _, n := range s.nodes {
			list = append(list, n)
		}
		return nil
	})
	return list, err
}

// join starts a member; stop ends it in order.
func (t *tables) join(tb testing.TB, name string) (m *Member, s *side, stop func()) {
	tb.Helper()
	s = &side{tables: t}
	m, err := Join(tb.Context(), Options{Name: name, URL: "http://" + name, Store: s, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		tb.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { defer close(ended); m.Run(ctx) }()
	return m, s, func() { cancel(); <-ended }
}

func lead(tb testing.TB, m *Member) *Lease {
	tb.Helper()
	l, err := m.Lead(tb.Context())
	if err != nil {
		tb.Fatal(err)
	}
	return l
}

// Two leases are never valid at the same time, whatever happens to the connection of the first node.
func TestALeaseIsNotValidOnceAnotherNodeLeads(t *testing.T) {
	for name, cut := range map[string]time.Duration{"for good": 0, "until it has expired": LeaseLength + time.Second, "within its length": LeaseLength / 2} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				all := &tables{nodes: map[string]postgres.Node{}}
				one, connection, stopOne := all.join(t, "one")
				two, _, stopTwo := all.join(t, "two")
				defer stopOne()
				defer stopTwo()
				first := lead(t, one)
				<-time.After(3 * time.Second)
				connection.setCut(true)
				began := time.Now()
				if cut > 0 {
					time.AfterFunc(cut, func() { connection.setCut(false) })
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				second, err := two.Lead(ctx)
				if cut == LeaseLength/2 {
					if err == nil || !first.Valid(0) {
						t.Error("the lease was lost in a short interruption")
					}
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				if first.Valid(0) {
					t.Error("two leases are valid at the same time")
				}
				if took := time.Since(began); took > LeaseLength+watchEvery {
					t.Errorf("the take-over took %v", took)
				}
				if second.Epoch <= first.Epoch {
					t.Errorf("epoch %d follows %d", second.Epoch, first.Epoch)
				}
				if cut > 0 {
					<-first.Lost()
					if first.Await(t.Context(), 0) {
						t.Error("a lost lease is valid again")
					}
				}
			})
		})
	}
}

// An expired lease that no other node wants is renewed, and work that waits for it goes on.
func TestAnExpiredLeaseIsRenewedIfNobodyTookIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := &tables{nodes: map[string]postgres.Node{}}
		one, connection, stop := all.join(t, "one")
		defer stop()
		l := lead(t, one)
		connection.setCut(true)
		<-time.After(LeaseLength + time.Second)
		if l.Valid(0) {
			t.Fatal("the lease is valid after its end")
		}
		time.AfterFunc(30*time.Second, func() { connection.setCut(false) })
		began := time.Now()
		if !l.Await(t.Context(), nodeMargin) || time.Since(began) < 30*time.Second {
			t.Error("work went on before the lease was renewed, or never")
		}
	})
}

const nodeMargin = 2 * time.Second

func TestAnOrderlyStopHandsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := &tables{nodes: map[string]postgres.Node{}}
		one, _, stopOne := all.join(t, "one")
		two, _, stopTwo := all.join(t, "two")
		defer stopTwo()
		first := lead(t, one)
		stopOne()
		began := time.Now()
		second := lead(t, two)
		if took := time.Since(began); took > 2*watchEvery || first.Valid(0) || !second.Valid(0) {
			t.Errorf("handed over in %v, valid: %v, %v", took, first.Valid(0), second.Valid(0))
		}
		if leader, _ := two.Leader(); leader.Node != "two" || !leader.Held || !two.Leading() || one.Leading() {
			t.Errorf("the leader is %+v", leader)
		}
		if _, err := Join(t.Context(), Options{Name: "one", Store: &side{tables: all}, Logger: slog.New(slog.DiscardHandler)}); err != nil {
			t.Errorf("the name of a node that has stopped is in use: %v", err)
		}
		if _, err := Join(t.Context(), Options{Name: "two", Store: &side{tables: all}, Logger: slog.New(slog.DiscardHandler)}); fanfare.CodeOf(err) != fanfare.Conflict {
			t.Errorf("a second node with the same name: %v", err)
		}
	})
}

func TestLeadEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := &tables{nodes: map[string]postgres.Node{}}
		one, _, stopOne := all.join(t, "one")
		two, _, stopTwo := all.join(t, "two")
		defer stopOne()
		defer stopTwo()
		first := lead(t, one)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := two.Lead(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a second node leads: %v", err)
		}
		one.Resign(first)
		<-time.After(time.Minute)
		if two.Leading() {
			t.Error("a node leads that does not want to")
		}
	})
}
