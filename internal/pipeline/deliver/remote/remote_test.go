package remote_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/pipeline/deliver/delivertest"
	"fanfare.dev/fanfare/internal/pipeline/deliver/driver"
	"fanfare.dev/fanfare/internal/pipeline/deliver/remote"
)

// driverFunc is a driver as a function, which gets the abort context of the node, too.
type driverFunc func(ctx, abort context.Context, queue driver.Queue) error

// A faultyConn can lose what it writes, and delay what it reads.
type faultyConn struct {
	net.Conn
	silent atomic.Bool
	delay  atomic.Int64
}

func (c *faultyConn) Write(p []byte) (int, error) {
	if c.silent.Load() {
		return len(p), nil
	}
	return c.Conn.Write(p)
}

func (c *faultyConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if d := c.delay.Swap(0); d > 0 {
		<-time.After(time.Duration(d))
	}
	return n, err
}

// A pair is a leader and a node, with a link between them.
type pair struct {
	hub          *remote.Hub
	node         *remote.Node
	leader, far  *faultyConn
	leave        context.CancelFunc // ends the agent in order
	agentEnded   chan struct{}
	agentErr     error
	changed      atomic.Int32
	leads        atomic.Bool
	missing      atomic.Bool // a file that drivers need
	attachedDone chan struct{}
}

func connect(t *testing.T, d driverFunc) *pair {
	t.Helper()
	p := &pair{agentEnded: make(chan struct{}), attachedDone: make(chan struct{})}
	p.leads.Store(true)
	logger := slog.New(slog.DiscardHandler)
	p.hub = remote.NewHub(remote.HubOptions{Changed: func() { p.changed.Add(1) }, Leads: func(time.Duration) bool { return p.leads.Load() }, Logger: logger})
	agent := remote.NewAgent(remote.AgentOptions{Drain: time.Minute, Logger: logger, Drivers: func(abort context.Context, settings []byte) (map[string]driver.Driver, error) {
		if p.missing.Load() {
			return nil, errors.New("no such file")
		}
		if string(settings) != "settings" {
			return nil, fmt.Errorf("wrong settings %q", settings)
		}
		return map[string]driver.Driver{"relay": withAbort{d, abort}}, nil
	}, Sign: func(public []byte, digest *[32]byte) []byte {
		if string(public) != "public" {
			return nil
		}
		return append([]byte("signed "), digest[:]...)
	}})
	a, b := net.Pipe()
	p.leader, p.far = &faultyConn{Conn: a}, &faultyConn{Conn: b}
	ctx, leave := context.WithCancel(context.Background())
	p.leave = leave
	go func() {
		defer close(p.agentEnded)
		p.agentErr = agent.Serve(ctx, p.far)
	}()
	go func() {
		defer close(p.attachedDone)
		p.hub.Attach(p.leader, "b", "v1")
	}()
	synctest.Wait()
	if p.node = nil; len(p.hub.Nodes()) == 1 {
		p.node = p.hub.Nodes()[0]
	} else {
		t.Fatal("the node is not attached")
	}
	return p
}

type withAbort struct {
	driverFunc
	abort context.Context
}

func (w withAbort) Serve(ctx context.Context, queue driver.Queue) error {
	return w.driverFunc(ctx, w.abort, queue)
}

// end closes both sides, and waits for them.
func (p *pair) end() {
	p.hub.Close()
	<-p.agentEnded
	<-p.attachedDone
}

// serve runs the driver on the node, and returns a channel with its error.
func (p *pair) serve(ctx context.Context, queue driver.Queue) <-chan error {
	done := make(chan error, 1)
	go func() { done <- p.node.Driver(remote.NewChannel(7, []byte("settings")), "relay").Serve(ctx, queue) }()
	return done
}

func messages(n int) []*driver.Message {
	all := make([]*driver.Message, n)
	for i := range all {
		all[i] = &driver.Message{
			Delivery: fanfare.DeliveryRef{Day: 20_000, Manifest: 12, Position: uint32(i)}, From: "s@example.org", To: fmt.Sprintf("r%d@example.org", i),
			Body: fmt.Appendf(nil, "message %d\r\n", i), UTF8: i%2 == 0, EightBit: i%3 == 0, NoDotStuffing: i%5 == 0,
		}
	}
	return all
}

func accepted() driver.Outcome {
	return driver.Outcome{Verdict: driver.Accepted, Code: 250, Text: "ok", Relay: "relay:25", At: time.Now()}
}

// acceptAll sends every message, and records what it saw.
func acceptAll(seen *sync.Map) driverFunc {
	return func(ctx, _ context.Context, queue driver.Queue) error {
		for {
			m, err := queue.Next(ctx, true)
			if m == nil {
				return err
			}
			if !queue.Release(m) {
				continue
			}
			kept := *m
			kept.Body, kept.Attachments = bytes.Clone(m.Body), bytes.Clone(m.Attachments)
			seen.Store(m.Delivery, kept)
			if err := queue.Report(m, accepted()); err != nil {
				return err
			}
		}
	}
}

func TestADriverOnAnotherNodeGetsTheMessagesUnchanged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var seen sync.Map
		p := connect(t, acceptAll(&seen))
		all := messages(100)
		attachment := []byte("a file that several messages share\r\n")
		want := map[fanfare.DeliveryRef]driver.Message{}
		for i, m := range all {
			if i%4 != 3 {
				m.Attachments = attachment
			}
			kept := *m
			kept.Body = bytes.Clone(m.Body)
			want[m.Delivery] = kept
		}
		queue := delivertest.NewQueue(all...)
		if err := <-p.serve(t.Context(), queue.Connection()); err != nil {
			t.Fatal(err)
		}
		for ref, w := range want {
			at, _ := seen.Load(ref)
			got, ok := at.(driver.Message)
			if !ok || got.To != w.To || got.From != w.From || !bytes.Equal(got.Body, w.Body) || !bytes.Equal(got.Attachments, w.Attachments) ||
				got.UTF8 != w.UTF8 || got.EightBit != w.EightBit || got.NoDotStuffing != w.NoDotStuffing {
				t.Errorf("%s arrived as %+v, want %+v", ref, got, w)
			}
			if o := queue.Outcomes()[ref]; o.Verdict != driver.Accepted || o.Code != 250 || o.Text != "ok" || o.Relay != "relay:25" {
				t.Errorf("the outcome of %s is %+v", ref, o)
			}
		}
		queue.Check(t)
		p.end()
	})
}

// The reply to a report brings the next message, before the driver asks for it. If the driver does not ask, the message goes
// back into the queue, in its place.
func TestAReportBringsTheNextMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := messages(6)
		queue := delivertest.NewQueue(all...)
		send := func(queue driver.Queue, m *driver.Message) {
			if !queue.Release(m) || queue.Report(m, accepted()) != nil {
				t.Errorf("%s was not sent", m.To)
			}
		}
		p := connect(t, func(ctx, _ context.Context, remote driver.Queue) error {
			next := func(want string) *driver.Message {
				m, err := remote.Next(ctx, false)
				if m == nil || err != nil || m.To != want {
					panic(fmt.Sprintf("the next message is %+v, %v; want %s", m, err, want)) // the error of the driver
				}
				return m
			}
			send(remote, next("r0@example.org"))
			if n := queue.Waiting(); n != 4 {
				t.Errorf("after a report, %d messages wait", n)
			}
			first, second := next("r1@example.org"), next("r2@example.org")
			send(remote, first)
			remote.Return(second)
			if n := queue.Waiting(); n != 4 || queue.Returned(all[3].Delivery) != 1 {
				t.Errorf("after a return, %d messages wait", n)
			}
			for _, to := range []string{"r2@example.org", "r3@example.org", "r4@example.org"} {
				send(remote, next(to))
			}
			if n := queue.Waiting(); n != 0 {
				t.Errorf("before the end, %d messages wait", n)
			}
			return nil
		})
		if err := <-p.serve(t.Context(), queue.Connection()); err != nil {
			t.Fatal(err)
		}
		if queue.Waiting() != 1 || queue.Returned(all[5].Delivery) != 1 || len(queue.Outcomes()) != 5 {
			t.Errorf("%d messages wait, and %d have outcomes", queue.Waiting(), len(queue.Outcomes()))
		}
		queue.Check(t)
		p.end()
	})
}

// A driver waits for a message only for some time, and then closes its connection. A message that arrives at that moment
// is not lost.
func TestACallOfNextEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		waited := make(chan time.Duration, 1)
		p := connect(t, func(ctx, _ context.Context, queue driver.Queue) error {
			idle, cancel := context.WithTimeout(ctx, 30*time.Second)
			defer cancel()
			began := time.Now()
			m, err := queue.Next(idle, true)
			if m != nil {
				queue.Return(m)
			}
			waited <- time.Since(began)
			return err
		})
		queue := delivertest.NewQueue()
		queue.BlocksWhenEmpty = true
		if err := <-p.serve(t.Context(), queue.Connection()); err != nil {
			t.Fatal(err)
		}
		if d := <-waited; d != 30*time.Second {
			t.Errorf("the call lasted %v, want 30 s", d)
		}
		queue.Check(t)
		p.end()
	})
}

func TestTheEndOfAContextReachesTheDriver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := connect(t, func(ctx, _ context.Context, queue driver.Queue) error {
			<-ctx.Done()
			return errors.New("it has ended")
		})
		ctx, cancel := context.WithCancel(t.Context())
		done := p.serve(ctx, delivertest.NewQueue().Connection())
		synctest.Wait()
		cancel()
		if err := <-done; err == nil || err.Error() != "it has ended" {
			t.Errorf("the error is %v", err)
		}
		if p.node.Connections() != 0 {
			t.Errorf("%d connections are left", p.node.Connections())
		}
		p.end()
	})
}

// A node holds two messages, one of them with a body that was begun, when its link breaks in different ways.
func TestMessagesOfANodeThatIsGoneAreSettled(t *testing.T) {
	for name, c := range map[string]struct {
		cut     func(*pair)
		aborted time.Duration // at most, until the node closes its connections
	}{
		"the process ends":             {func(p *pair) { _ = p.far.Close() }, 0},
		"nothing arrives at the node":  {func(p *pair) { p.leader.silent.Store(true) }, remote.SilenceLimit + 2*time.Second},
		"nothing arrives from it":      {func(p *pair) { p.far.silent.Store(true) }, remote.SilenceLimit + 2*time.Second},
		"nothing arrives at all":       {func(p *pair) { p.leader.silent.Store(true); p.far.silent.Store(true) }, remote.SilenceLimit + 2*time.Second},
		"it sends what makes no sense": {func(p *pair) { go p.far.Conn.Write([]byte{0, 0, 0, 1, 0, 0, 0, 0, 0}) }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var abortedAt atomic.Int64
				p := connect(t, func(ctx, abort context.Context, queue driver.Queue) error {
					first, _ := queue.Next(ctx, true)
					second, _ := queue.Next(ctx, false)
					if first == nil || second == nil || !queue.Release(first) {
						return errors.New("it got no messages")
					}
					<-abort.Done()
					abortedAt.Store(time.Now().UnixNano())
					return queue.Report(first, driver.Outcome{Verdict: driver.Lost, Text: "aborted", Relay: "r", At: time.Now()})
				})
				all := messages(2)
				queue := delivertest.NewQueue(all...)
				second := all[1].Delivery
				done := p.serve(t.Context(), queue.Connection())
				synctest.Wait()
				began := time.Now()
				c.cut(p)
				<-p.attachedDone
				lost := time.Now()
				<-time.After(time.Millisecond)
				if queue.Returned(second) != 1 {
					t.Error("the message of which nothing was sent is not back in the queue")
				}
				if err := <-done; !errors.Is(err, remote.ErrLost) {
					t.Errorf("the error is %v", err)
				}
				settled := time.Now()
				<-p.agentEnded
				aborted := time.Unix(0, abortedAt.Load())
				if d := aborted.Sub(began); d > c.aborted {
					t.Errorf("the node closed its connections after %v", d)
				}
				if settled.Before(aborted) || settled.Sub(lost) < remote.SilenceLimit {
					t.Errorf("the released message was given up %v after the link, and the node stopped sending %v after it", settled.Sub(lost), aborted.Sub(lost))
				}
				p.end()
			})
		})
	}
}

func TestAReleaseThatComesTooLateIsNotUsed(t *testing.T) {
	for name, c := range map[string]struct {
		late func(*pair)
		used bool
	}{
		"in time":                                 {func(*pair) {}, true},
		"after a short delay":                     {func(p *pair) { p.far.delay.Store(int64(800 * time.Millisecond)) }, true},
		"after a pause of the node":               {func(p *pair) { p.far.delay.Store(int64(1200 * time.Millisecond)) }, false},
		"of a leader whose lease is about to end": {func(p *pair) { p.leads.Store(false) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var p *pair
				var released bool
				p = connect(t, func(ctx, _ context.Context, queue driver.Queue) error {
					m, err := queue.Next(ctx, true)
					if m == nil {
						return err
					}
					c.late(p)
					if released = queue.Release(m); released {
						return queue.Report(m, accepted())
					}
					return nil
				})
				queue := delivertest.NewQueue(messages(1)...)
				if err := <-p.serve(t.Context(), queue.Connection()); err != nil {
					t.Fatal(err)
				}
				if released != c.used {
					t.Errorf("released: %v, want %v", released, c.used)
				}
				for ref, o := range queue.Outcomes() {
					if (o.Verdict == driver.Accepted) != c.used {
						t.Errorf("the outcome of %s is %+v", ref, o)
					}
				}
				queue.Check(t)
				p.end()
			})
		})
	}
}

// A node that leaves finishes the message that it is sending.
func TestANodeThatLeavesFinishesItsMessages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reply := make(chan struct{})
		aborted := false
		p := connect(t, func(ctx, abort context.Context, queue driver.Queue) error {
			m, err := queue.Next(ctx, true)
			if m == nil || !queue.Release(m) {
				return err
			}
			<-reply
			aborted = abort.Err() != nil
			return queue.Report(m, accepted())
		})
		queue := delivertest.NewQueue(messages(3)...)
		done := p.serve(t.Context(), queue.Connection())
		synctest.Wait()
		joined := p.changed.Load()
		p.leave()
		synctest.Wait()
		if len(p.hub.Nodes()) != 0 || p.changed.Load() != joined+1 {
			t.Errorf("the leader still has %d nodes after %d changes", len(p.hub.Nodes()), p.changed.Load()-joined)
		}
		close(reply)
		if err := <-done; err != nil {
			t.Error(err)
		}
		<-p.agentEnded
		if p.agentErr != nil || aborted || len(queue.Outcomes()) != 1 || queue.Waiting() != 2 {
			t.Errorf("error %v, aborted %v, %d outcomes, %d waiting", p.agentErr, aborted, len(queue.Outcomes()), queue.Waiting())
		}
		queue.Check(t)
		p.end()
	})
}

func TestSettingsThatANodeCannotUseAreAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := connect(t, func(context.Context, context.Context, driver.Queue) error { return nil })
		for want, d := range map[string]driver.Driver{
			"wrong settings":           p.node.Driver(remote.NewChannel(1, []byte("unknown")), "relay"),
			`has no relay "elsewhere"`: p.node.Driver(remote.NewChannel(2, []byte("settings")), "elsewhere"),
		} {
			if err := d.Serve(t.Context(), delivertest.NewQueue().Connection()); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("the error is %v, want %s", err, want)
			}
		}
		c := remote.NewChannel(1, []byte("settings"))
		if p.node.Driver(c, "relay") != p.node.Driver(c, "relay") {
			t.Error("two equal drivers differ")
		}
		p.end()
		if err := p.node.Driver(c, "relay").Serve(t.Context(), delivertest.NewQueue().Connection()); !errors.Is(err, remote.ErrLost) {
			t.Errorf("after the end of the link: %v", err)
		}
	})
}

// Drivers that could not be created are created again later: a file may be there now.
func TestDriversAreCreatedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := connect(t, func(context.Context, context.Context, driver.Queue) error { return nil })
		p.missing.Store(true)
		d := p.node.Driver(remote.NewChannel(1, []byte("settings")), "relay")
		for _, wait := range []time.Duration{0, time.Second} {
			<-time.After(wait)
			if err := d.Serve(t.Context(), delivertest.NewQueue().Connection()); err == nil || !strings.Contains(err.Error(), "no such file") {
				t.Errorf("the error is %v", err)
			}
		}
		p.missing.Store(false)
		<-time.After(2 * time.Second)
		if err := d.Serve(t.Context(), delivertest.NewQueue().Connection()); err != nil {
			t.Errorf("with the file: %v", err)
		}
		p.end()
	})
}

func TestANodeSignsForTheLeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := connect(t, nil)
		digest := [32]byte{1, 2, 3}
		if got, ok := p.hub.Sign([]byte("public"), &digest); !ok || string(got) != "signed "+string(digest[:]) {
			t.Errorf("%q, %v", got, ok)
		}
		if got, ok := p.hub.Sign([]byte("another"), &digest); ok {
			t.Errorf("with a key that the node does not have: %q", got)
		}
		if p.hub.Capacity() == 0 {
			t.Error("there is no capacity")
		}
		p.leader.silent.Store(true)
		began := time.Now()
		if _, ok := p.hub.Sign([]byte("public"), &digest); ok || time.Since(began) > 3*time.Second {
			t.Errorf("a node that does not reply: %v after %v", ok, time.Since(began))
		}
		p.end()
		if _, ok := p.hub.Sign([]byte("public"), &digest); ok || p.hub.Capacity() != 0 {
			t.Error("without nodes")
		}
	})
}

func TestADriverThatPanicsOnAnotherNodeIsAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := connect(t, func(ctx, _ context.Context, queue driver.Queue) error {
			_, _ = queue.Next(ctx, true)
			panic("a bug")
		})
		queue := delivertest.NewQueue(messages(1)...)
		if err := <-p.serve(t.Context(), queue.Connection()); err == nil || !strings.Contains(err.Error(), "a bug") {
			t.Errorf("the error is %v", err)
		}
		queue.Check(t)
		p.end()
	})
}

// The second link of a node replaces the first.
func TestANodeThatReturnsReplacesItsOldLink(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := connect(t, func(context.Context, context.Context, driver.Queue) error { return nil })
		a, b := net.Pipe()
		again := make(chan struct{})
		go func() { defer close(again); p.hub.Attach(a, "b", "v2") }()
		agent := remote.NewAgent(remote.AgentOptions{Logger: slog.New(slog.DiscardHandler)})
		go agent.Serve(t.Context(), b)
		<-p.attachedDone
		synctest.Wait()
		if nodes := p.hub.Nodes(); len(nodes) != 1 || nodes[0].Version() != "v2" {
			t.Errorf("the nodes are %v", nodes)
		}
		p.end()
		<-again
	})
}

// A node that breaks the protocol while it may be sending a message loses its link, and the message is given up only when
// the node has certainly closed its connection.
func TestAReportThatMakesNoSenseEndsTheLink(t *testing.T) {
	for name, reported := range map[string]func(first, second *driver.Message) []*driver.Message{
		"the same message twice": func(first, _ *driver.Message) []*driver.Message { return []*driver.Message{first, first} },
		"a message not held":     func(first, second *driver.Message) []*driver.Message { return []*driver.Message{first, second} },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := connect(t, func(ctx, _ context.Context, queue driver.Queue) error {
					first, _ := queue.Next(ctx, true)
					second, _ := queue.Next(ctx, false)
					if first == nil || second == nil || !queue.Release(first) {
						return errors.New("it got no messages")
					}
					queue.Return(second)
					return queue.ReportAll(reported(first, second), []driver.Outcome{accepted(), accepted()})
				})
				queue := delivertest.NewQueue(messages(2)...)
				began := time.Now()
				if err := <-p.serve(t.Context(), queue.Connection()); !errors.Is(err, remote.ErrLost) {
					t.Errorf("the error is %v", err)
				}
				if d := time.Since(began); d < remote.SilenceLimit {
					t.Errorf("the released message was given up after %v", d)
				}
				if n := len(queue.Outcomes()); n != 0 {
					t.Errorf("%d outcomes", n)
				}
				p.end()
			})
		})
	}
}
