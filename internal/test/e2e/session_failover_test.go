package e2e

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/client"
	"fanfare.dev/fanfare/client/session"
)

// A balancer passes each connection to the next node that responds, as the load balancer in front of a cluster does.
type balancer struct {
	nodes []string // addresses
	next  atomic.Uint64
}

// newBalancer starts a balancer and returns its URL.
func newBalancer(t *testing.T, nodes ...*server) (url string) {
	t.Helper()
	b := &balancer{}
	for _, n := range nodes {
		b.nodes = append(b.nodes, hostOf(t, n.url))
	}
	var c net.ListenConfig
	l, err := c.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go b.pass(conn)
		}
	}()
	return "http://" + l.Addr().String()
}

// pass closes a connection that no node accepts.
func (b *balancer) pass(conn net.Conn) {
	defer conn.Close()
	checks := &http.Client{Transport: plainHTTP.Transport, Timeout: 2 * time.Second}
	first := b.next.Add(1)
	for i := range uint64(len(b.nodes)) {
		address := b.nodes[(first+i)%uint64(len(b.nodes))]
		response, err := checks.Get("http://" + address + "/healthz")
		if err != nil {
			continue
		}
		response.Body.Close()
		node, err := net.DialTimeout("tcp", address, 2*time.Second)
		if err != nil {
			continue
		}
		defer node.Close()
		go func() {
			_, _ = io.Copy(node, conn) // either side may end the connection
			node.Close()
		}()
		_, _ = io.Copy(conn, node) // as above
		return
	}
}

// leading returns which of the nodes leads, and waits until one does.
func leading(t *testing.T, nodes ...*server) (leader *server) {
	t.Helper()
	eventually(t, "a node leads", func() bool {
		for _, n := range nodes {
			r, err := plainHTTP.Get(n.url + "/readyz")
			if err != nil {
				continue
			}
			text, err := io.ReadAll(r.Body)
			r.Body.Close()
			if err == nil && r.StatusCode == 200 && strings.HasPrefix(string(text), "ready") {
				leader = n
				return true
			}
		}
		return false
	})
	return leader
}

// interactive opens an interactive session whose client has received a response. The function that it returns checks that the
// client learns of the end of the session.
func interactive(t *testing.T, c *client.Client) (lost func()) {
	t.Helper()
	s, err := session.Open(t.Context(), c, session.Options{Worker: "pricing"})
	if err != nil {
		t.Fatal(err)
	}
	cl, err := s.Client(t.Context(), "one")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := cl.Send(t.Context(), []byte("7")); err != nil {
		t.Fatal(err)
	}
	responses := make(chan string, 1)
	ended := make(chan error, 1)
	go func() {
		for r, err := range cl.Responses(t.Context()) {
			if err != nil {
				ended <- err
				return
			}
			responses <- string(r.Body)
		}
		ended <- nil
	}()
	if got := <-responses; got != "14" {
		t.Fatalf("the response is %q", got)
	}
	return func() {
		t.Helper()
		select {
		case err := <-ended:
			if e, is := errors.AsType[*fanfare.Error](err); !is || e.Code != fanfare.Conflict || !strings.Contains(e.Message, "broker stopped") {
				t.Errorf("the client of the interactive session got %v", err)
			}
		case <-time.After(patience):
			t.Error("the client of the interactive session got no error")
		}
		if info, err := s.Info(t.Context()); err != nil || info.State != "lost" {
			t.Errorf("the interactive session: %+v, %v", info, err)
		}
	}
}

// Durable sessions continue on another node when theirs is killed, stopped or frozen. Each response comes exactly once, and no
// request of a session that runs requests at most once runs twice. Interactive sessions end.
func TestSessionsMoveToAnotherNode(t *testing.T) {
	t.Parallel()
	c := newTestCluster(t)
	flags := []string{"--durability", "fsync"}
	first, second := c.pair(flags...)
	third := c.node("three", flags...)
	third.launch()
	third.ready("it forwards")
	third.use(first.key)
	nodes := []*server{first, second, third}
	first.mustRun("service: bank\nworkers:\n  pricing: {concurrency: 8, timeout: 60s}\n", "apply", "-f", "-")
	url := newBalancer(t, nodes...)
	library, err := client.New(url, first.key)
	if err != nil {
		t.Fatal(err)
	}
	library = library.ForService("bank")
	load := startLoggedLoad(t, library, url, first.key, 6000, 150*time.Millisecond)
	done := 0
	alive := func() []*server {
		var list []*server
		for _, n := range nodes {
			select {
			case <-n.gone:
			default:
				list = append(list, n)
			}
		}
		return list
	}
	// fails waits for another tenth of the responses, has the leader fail, and waits until another node has sent responses. lost
	// checks that the interactive session has ended.
	fails := func(how string, stream *loggedStream, fail func(leader *server)) (leader *server, lost func()) {
		t.Helper()
		done++
		eventuallyWith(t, how+": requests are answered", func() bool { return load.responses() >= done*load.requests/10 },
			func() string { return fmt.Sprintf("%d responses", load.responses()) })
		leader = leading(t, alive()...)
		lost = interactive(t, library)
		before := load.responses()
		if before > load.requests*8/10 {
			t.Errorf("%s: only few requests wait: %d responses", how, before)
		}
		fail(leader)
		ended := time.Now()
		before = load.responses()
		// The first connections of a client and of an instance are made while no node leads.
		stream.killAndBegin()
		load.instances[done%3].killAndBegin()
		own := stream.responses()
		eventually(t, how+": responses come again", func() bool { return stream.responses() > own })
		t.Logf("%s: %d responses before, the next one after %v", how, before, time.Since(ended).Round(10*time.Millisecond))
		return leader, lost
	}
	low, middle, high := load.streams[0], load.streams[1], load.streams[2] // by priority: high ends first
	kill := func(leader *server) { leader.kill() }
	killed, lost := fails("killed", high, kill)
	lost()
	stopped, lost := fails("stopped", high, func(leader *server) { leader.mustStop() })
	lost()
	for _, n := range []*server{stopped, killed} {
		n.launch() // is a standby now
		n.ready("it forwards")
	}
	frozen, lost := fails("frozen", middle, func(leader *server) {
		if err := leader.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the node is frozen", func() bool {
			state, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", leader.cmd.Process.Pid))
			return err == nil && strings.Contains(string(state), ") T ")
		})
	})
	if err := frozen.cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the frozen node has stepped down", func() bool { return strings.Contains(frozen.logged(), "this node no longer leads") })
	lost() // if the client was connected to the frozen node, it hears from it only now
	frozen.ready("it forwards")
	for _, how := range []string{"killed again", "killed a third time"} {
		_, lost := fails(how, low, kill)
		lost()
	}
	load.finish(library)
}
