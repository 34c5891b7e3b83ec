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

// A memoryStore has the tables of a cluster in memory.
type memoryStore struct {
	mu    sync.Mutex
	lease postgres.Holder
	until time.Time
	nodes map[string]postgres.Node
}

func newStore() *memoryStore { return &memoryStore{nodes: map[string]postgres.Node{}} }

var errCut = errors.New("connection refused")

// A connection is the connection of one node to the store.
type connection struct {
	*memoryStore
	cut bool // the store cannot be reached
}

func (s *connection) do(fn func() error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cut {
		return errCut
	}
	return fn()
}

func (s *connection) setCut(cut bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cut = cut
}

func (s *connection) Register(_ context.Context, n *postgres.Node, ttl time.Duration) error {
	return s.do(func() error {
		if old, ok := s.nodes[n.Name]; ok && old.Instance != n.Instance && time.Since(old.Seen) < ttl {
			return &fanfare.Error{Code: fanfare.Conflict, Message: "taken"}
		}
		n.Seen = time.Now()
		s.nodes[n.Name] = *n
		return nil
	})
}

func (s *connection) Heartbeat(_ context.Context, name string, _ int64, _ time.Time) error {
	return s.do(func() error {
		n := s.nodes[name]
		n.Seen = time.Now()
		s.nodes[name] = n
		return nil
	})
}

func (s *connection) Leave(_ context.Context, name string, _ int64) error {
	return s.do(func() error { delete(s.nodes, name); return nil })
}

func (s *connection) Holder(context.Context, string) (h postgres.Holder, err error) {
	err = s.do(func() error {
		h = s.lease
		h.Held = time.Now().Before(s.until)
		h.URL = s.nodes[h.Node].URL
		return nil
	})
	return h, err
}

func (s *connection) Acquire(_ context.Context, _, node string, length time.Duration) (epoch int64, err error) {
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

func (s *connection) Renew(_ context.Context, _, node string, epoch int64, length time.Duration) (held bool, err error) {
	err = s.do(func() error {
		if held = s.lease.Node == node && s.lease.Epoch == epoch; held {
			s.until = time.Now().Add(length)
		}
		return nil
	})
	return held, err
}

func (s *connection) Release(ctx context.Context, lease, node string, epoch int64) error {
	_, err := s.Renew(ctx, lease, node, epoch, 0)
	return err
}

func (s *connection) Nodes(context.Context, time.Duration) (list []postgres.Node, err error) {
	err = s.do(func() error {
		for _, n := range s.nodes {
			list = append(list, n)
		}
		return nil
	})
	return list, err
}

// join starts a member; stop ends it in order.
func (t *memoryStore) join(tb testing.TB, name string) (m *Member, s *connection, stop func()) {
	tb.Helper()
	s = &connection{memoryStore: t}
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

// Two leases are never valid at the same time, even if the first node loses its connection.
func TestALeaseIsNotValidOnceAnotherNodeLeads(t *testing.T) {
	for name, cut := range map[string]time.Duration{"for good": 0, "until it has expired": leaseLength + time.Second, "within its length": leaseLength / 2} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				all := newStore()
				one, link, stopOne := all.join(t, "one")
				two, _, stopTwo := all.join(t, "two")
				defer stopOne()
				defer stopTwo()
				first := lead(t, one)
				<-time.After(3 * time.Second)
				link.setCut(true)
				began := time.Now()
				if cut > 0 {
					time.AfterFunc(cut, func() { link.setCut(false) })
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				second, err := two.Lead(ctx)
				if cut == leaseLength/2 {
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
				if took := time.Since(began); took > leaseLength+watchEvery {
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

// A lease that has expired never becomes valid again, even if no other node leads. The node can acquire a new one.
func TestAnExpiredLeaseIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := newStore()
		one, link, stop := all.join(t, "one")
		defer stop()
		first := lead(t, one)
		<-time.After(renewEvery + time.Millisecond)
		began := time.Now()
		link.setCut(true)
		if !first.Await(t.Context(), nodeMargin) {
			t.Error("the lease was lost immediately")
		}
		<-time.After(leaseLength - nodeMargin)
		if first.Await(t.Context(), nodeMargin) {
			t.Error("work began with less validity than it needs")
		}
		<-first.Lost()
		if took := time.Since(began); took > leaseLength || first.Valid(0) || one.Leading() {
			t.Errorf("the lease was lost after %v; valid %v", took, first.Valid(0))
		}
		link.setCut(false)
		if second := lead(t, one); second.Epoch == first.Epoch || !second.Valid(nodeMargin) || first.Valid(0) {
			t.Errorf("epoch %d follows %d", second.Epoch, first.Epoch)
		}
	})
}

const nodeMargin = 2 * time.Second

func TestAnOrderlyStopHandsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := newStore()
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
		if _, err := Join(t.Context(), Options{Name: "one", Store: &connection{memoryStore: all}, Logger: slog.New(slog.DiscardHandler)}); err != nil {
			t.Errorf("the name of a node that has stopped is in use: %v", err)
		}
		if _, err := Join(t.Context(), Options{Name: "two", Store: &connection{memoryStore: all}, Logger: slog.New(slog.DiscardHandler)}); fanfare.CodeOf(err) != fanfare.Conflict {
			t.Errorf("a second node with the same name: %v", err)
		}
	})
}

func TestLeadEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := newStore()
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
			t.Error("a node leads although nothing waits for the lease")
		}
	})
}
