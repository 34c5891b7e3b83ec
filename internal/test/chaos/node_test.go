//go:build crashsteps

package chaos

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	natsserver "github.com/nats-io/nats-server/v2/server"

	"fanfare.dev/fanfare/internal/test/pgtest"
)

// patience bounds every wait.
const patience = 3 * time.Minute

// connections of each node that delivers.
const connections = 6

// A cluster is the processes under test.
type cluster struct {
	t                *testing.T
	start            time.Time
	primary, replica *pgtest.Server
	relay            *relay
	http             *http.Client
	nodes            []*node
	logs             string // directory

	mu    sync.Mutex
	leads string // the node that became the leader last
	turns int    // how often a node became the leader
}

// A node is a data directory and the process that runs on it.
type node struct {
	c         *cluster
	name      string
	roles     string
	url       string // without a proxy
	dir, log  string
	databases [2]*proxy // to the primary and to the standby of PostgreSQL
	nats      *proxy
	front     *proxy // to this node, for the other nodes
	args, env []string

	mu      sync.Mutex
	cmd     *exec.Cmd
	gone    chan struct{}
	wanted  bool // the process should run
	starts  int
	faulted atomic.Bool // a fault of this node is in progress
	joined  atomic.Bool // the process joined the cluster
}

// elapsed returns the seconds since the start.
func (c *cluster) elapsed() float64 { return time.Since(c.start).Seconds() }

// newCluster starts everything, and waits for the first leader.
func newCluster(t *testing.T) *cluster {
	t.Helper()
	c := &cluster{t: t, start: time.Now(), primary: pgtest.Start(t, pgtest.Quick...), relay: newRelay(t),
		http: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 32}}}
	c.replica = c.primary.Standby(pgtest.Quick...)
	c.primary.Administer("ALTER SYSTEM SET synchronous_standby_names = '*'", "SELECT pg_reload_conf()")
	if c.logs = os.Getenv("CHAOS_LOGS"); c.logs == "" {
		c.logs = t.TempDir()
	}
	bus, err := natsserver.NewServer(&natsserver.Options{Host: "127.0.0.1", Port: -1, JetStream: true, StoreDir: t.TempDir(), NoSigs: true, NoLog: true})
	if err != nil {
		t.Fatal(err)
	}
	bus.Start()
	t.Cleanup(func() { bus.Shutdown(); bus.WaitForShutdown() })
	if !bus.ReadyForConnections(patience) {
		t.Fatal("NATS does not start")
	}
	key := filepath.Join(t.TempDir(), "cluster.key")
	if err := os.WriteFile(key, []byte("a cluster key of a test with enough characters\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, n := range []struct{ name, roles string }{
		{"lead-1", "all"}, {"lead-2", "lead"}, {"deliver-1", "deliver"}, {"deliver-2", "deliver"}, {"deliver-3", "deliver"}, {"api-1", "api"},
	} {
		c.nodes = append(c.nodes, c.node(n.name, n.roles, hostOf(t, bus.ClientURL()), key))
	}
	c.nodes[0].run()
	c.until("the first node is ready", c.nodes[0].ready)
	for _, n := range c.nodes[1:] {
		n.run()
	}
	for _, n := range c.nodes {
		c.until(n.name+" is ready", n.ready)
	}
	return c
}

func hostOf(t *testing.T, text string) string {
	t.Helper()
	u, err := url.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return u.Host
}

// node prepares a node with its links.
func (c *cluster) node(name, roles, bus, key string) *node {
	t := c.t
	t.Helper()
	listen := pgtest.Address(t)
	n := &node{c: c, name: name, roles: roles, url: "http://" + listen, dir: filepath.Join(t.TempDir(), name), log: filepath.Join(c.logs, name+".log"),
		databases: [2]*proxy{newProxy(t, hostOf(t, c.primary.URL)), newProxy(t, hostOf(t, c.replica.URL))}, nats: newProxy(t, bus), front: newProxy(t, listen)}
	database, err := url.Parse(c.primary.URL)
	if err != nil {
		t.Fatal(err)
	}
	database.Host = n.databases[0].address + "," + n.databases[1].address
	query := database.Query()
	query.Set("target_session_attrs", "read-write")
	database.RawQuery = query.Encode()
	n.env = []string{"FANFARE_DB=" + database.String()}
	n.args = []string{"serve", "--data-dir", n.dir, "--listen", listen, "--public-url", "https://news.example.org", "--durability", "fsync", "--disk-floor", "0",
		"--node", name, "--node-url", "http://" + n.front.address, "--nats", "nats://" + n.nats.address, "--cluster-key-file", key, "--lease", "10s", "--drain-timeout", "10s", "--roles", roles}
	t.Cleanup(func() {
		n.mu.Lock()
		n.wanted = false
		cmd, gone := n.cmd, n.gone
		n.mu.Unlock()
		if cmd != nil {
			_ = cmd.Process.Signal(syscall.SIGCONT)
			_ = cmd.Process.Kill() // it may have ended
			<-gone
		}
		if t.Failed() {
			text, err := os.ReadFile(n.log)
			t.Logf("the end of the log of %s (%v):\n%s", name, err, text[max(0, len(text)-4000):])
		}
	})
	return n
}

// run starts the process, again if it ends by itself: a node that cannot join ends, and its supervisor starts it again.
func (n *node) run() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.wanted = true
	n.launch()
}

// launch starts the process. The caller holds n.mu.
func (n *node) launch() {
	cmd := exec.Command(binary, n.args...)
	cmd.Env = append(os.Environ(), n.env...)
	stderr, err := cmd.StderrPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		n.c.t.Errorf("start %s: %v", n.name, err)
		return
	}
	log, err := os.OpenFile(n.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		n.c.t.Errorf("log of %s: %v", n.name, err)
	}
	n.cmd, n.gone = cmd, make(chan struct{})
	n.starts++
	gone := n.gone
	go func() {
		lines := bufio.NewScanner(stderr)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			n.read(lines.Text())
			_, _ = fmt.Fprintf(log, "%6.1fs %s\n", n.c.elapsed(), lines.Text())
		}
		_ = log.Close()
		_ = cmd.Wait() // its state tells how it ended
		was := n.joined.Swap(false)
		close(gone)
		n.mu.Lock()
		defer n.mu.Unlock()
		if !n.wanted || n.cmd != cmd {
			return
		}
		n.c.t.Logf("%6.1fs %s ended by itself (%v)", n.c.elapsed(), n.name, cmd.ProcessState)
		if was {
			n.c.t.Errorf("%s ended by itself: %v", n.name, cmd.ProcessState)
		}
		<-time.After(time.Second)
		n.launch()
	}()
}

// read notes what a line of the log says.
func (n *node) read(line string) {
	switch {
	case strings.Contains(line, "this node leads"):
		n.c.mu.Lock()
		n.c.leads = n.name
		n.c.turns++
		n.c.mu.Unlock()
		n.c.t.Logf("%6.1fs %s leads", n.c.elapsed(), n.name)
	case strings.Contains(line, "is a node of a cluster"):
		n.joined.Store(true)
	}
}

// ready reports whether a node accepts requests.
func (n *node) ready() bool {
	ctx, cancel := context.WithTimeout(n.c.t.Context(), 5*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, n.url+"/readyz", http.NoBody)
	if err != nil {
		return false
	}
	response, err := n.c.http.Do(request)
	if err != nil {
		return false
	}
	_ = response.Body.Close()
	return response.StatusCode == http.StatusOK
}

// leader returns the node that became the leader last.
func (c *cluster) leader() *node {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.named(c.leads)
}

func (c *cluster) named(name string) *node {
	return c.nodes[slices.IndexFunc(c.nodes, func(n *node) bool { return n.name == name })]
}

// open returns how many connections to the relay a node may have.
func (n *node) open() int {
	if n.roles == "all" || n.roles == "deliver" {
		return connections
	}
	return 0
}

// end ends the process by a signal, and waits for its end.
func (n *node) end(by syscall.Signal) {
	n.mu.Lock()
	n.wanted = false
	cmd, gone := n.cmd, n.gone
	n.mu.Unlock()
	if err := cmd.Process.Signal(by); err != nil && !errors.Is(err, os.ErrProcessDone) {
		n.c.t.Errorf("end %s: %v", n.name, err)
	}
	if by == syscall.SIGKILL {
		<-gone
	}
}

// ended waits until the process that was asked to stop has ended.
func (n *node) ended() {
	n.mu.Lock()
	cmd, gone := n.cmd, n.gone
	n.mu.Unlock()
	select {
	case <-gone:
		if code := cmd.ProcessState.ExitCode(); code != 0 {
			n.c.t.Logf("%6.1fs %s stopped with %d", n.c.elapsed(), n.name, code)
		}
	case <-time.After(patience):
		n.c.t.Errorf("%s does not stop", n.name)
		_ = cmd.Process.Kill()
		<-gone
	}
}

func (n *node) signal(s syscall.Signal) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if err := n.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		n.c.t.Errorf("signal %s: %v", n.name, err)
	}
}

// until waits for a condition.
func (c *cluster) until(what string, cond func() bool) {
	c.t.Helper()
	limit := time.After(patience)
	look := time.NewTicker(20 * time.Millisecond)
	defer look.Stop()
	for !cond() {
		select {
		case <-look.C:
		case <-limit:
			c.t.Fatalf("in %v it did not come about that %s", patience, what)
		}
	}
}
