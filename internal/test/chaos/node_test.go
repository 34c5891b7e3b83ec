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
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// patience bounds every wait.
const patience = 3 * time.Minute

// connections of each node that delivers.
const connections = 6

// The sizes of the disks. A node has the files of its NATS server, if it is embedded.
const (
	nodeDiskBytes     = 1 << 30
	busDiskBytes      = 1 << 30
	databaseDiskBytes = 4 << 30
	// floor is the setting disk_floor.
	floor = "64MB"
)

// A cluster is the processes under test.
type cluster struct {
	t                *testing.T
	start            time.Time
	primary, replica *database
	relay            *relay
	http             *http.Client
	nodes            []*node
	buses            []*bus // none if the NATS servers are embedded
	logs             string // directory

	mu     sync.Mutex
	writer *database // that accepts writes
	leads  string    // the node that became the leader last
	turns  int       // how often a node became the leader
}

// A node is a data directory and the process that runs on it.
type node struct {
	c         *cluster
	name      string
	roles     string
	machine   *machine
	url       string // without a proxy
	dir, log  string
	databases []*link // to the primary and to the standby of PostgreSQL
	nats      []*link // to the NATS servers, or between the embedded ones
	front     []*link // to this node, for the other nodes
	relay     []*link
	step      string // file with the step of the clock
	args, env []string

	mu     sync.Mutex
	cmd    *exec.Cmd
	gone   chan struct{}
	wanted bool // the process should run
	starts int
	joined atomic.Bool // the process joined the cluster
}

// A link is the connections between a node and one server. They pass through a proxy or, in one direction of a link between embedded
// NATS servers, through that of another link.
type link struct {
	wire  wire
	proxy *proxy // nil: it belongs to another link
}

// to returns a link to a server through a proxy.
func (m *machine) to(server string) *link {
	p := newProxy(m.t, here(), server)
	return &link{wire{machine: m, port: portOf(p.address)}, p}
}

// from returns a link from others to an address of this machine.
func (m *machine) from(address string) *link {
	p := newProxy(m.t, here(), address)
	return &link{wire{machine: m, port: portOf(address), inbound: true}, p}
}

// elapsed returns the seconds since the start.
func (c *cluster) elapsed() float64 { return time.Since(c.start).Seconds() }

// newCluster starts everything, and waits for the first leader.
func newCluster(t *testing.T, embedded bool) *cluster {
	t.Helper()
	c := &cluster{t: t, start: time.Now(), relay: newRelay(t, here()), http: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 32}}}
	if c.logs = os.Getenv("CHAOS_LOGS"); c.logs == "" {
		c.logs = t.TempDir()
	}
	c.startDatabases()
	key := filepath.Join(t.TempDir(), "cluster.key")
	if err := os.WriteFile(key, []byte("a cluster key of a test with enough characters\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, n := range []struct{ name, roles string }{
		{"lead-1", "all"}, {"lead-2", "lead"}, {"deliver-1", "deliver"}, {"deliver-2", "deliver"}, {"deliver-3", "deliver"},
		{"match-1", "match"}, {"match-2", "match"}, {"api-1", "api"}, {"api-2", "api"},
	} {
		c.nodes = append(c.nodes, c.node(n.name, n.roles, key))
	}
	if embedded {
		c.embedBuses()
	} else {
		c.startBuses()
		for _, n := range c.nodes {
			for _, b := range c.buses {
				n.nats = append(n.nats, n.machine.to(b.config.Listen))
			}
			n.args = append(n.args, "--nats", natsURL(n.nats), "--replicas", strconv.Itoa(members))
		}
	}
	c.nodes[0].run()
	if !embedded { // otherwise it is ready when the other servers have started
		c.until("the first node is ready", c.nodes[0].ready)
	} else {
		c.until("the first node leads", func() bool { return c.lead() != "" })
	}
	for _, n := range c.nodes[1:] {
		n.run()
	}
	for _, n := range c.nodes {
		c.until(n.name+" is ready", n.ready)
	}
	return c
}

// embedBuses gives the first nodes embedded NATS servers.
func (c *cluster) embedBuses() {
	var routes, listen []string
	for _, n := range c.nodes[:members] {
		address := n.machine.address(6222)
		n.nats = []*link{n.machine.from(address)}
		listen = append(listen, address)
		routes = append(routes, n.nats[0].proxy.address)
	}
	for i, n := range c.nodes[:members] {
		n.args = append(n.args, "--cluster-routes", strings.Join(routes, ","), "--cluster-listen", listen[i])
		for j, other := range routes {
			if j != i {
				n.nats = append(n.nats, &link{wire{machine: n.machine, port: portOf(other)}, nil})
			}
		}
	}
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
func (c *cluster) node(name, roles, key string) *node {
	t := c.t
	t.Helper()
	m := newMachine(t, name, nodeDiskBytes)
	listen := m.address(8085)
	n := &node{c: c, name: name, roles: roles, machine: m, url: "http://" + listen, dir: filepath.Join(m.disk, "data"), log: filepath.Join(c.logs, name+".log"),
		databases: []*link{m.to(hostOf(t, c.primary.URL)), m.to(hostOf(t, c.replica.URL))}, front: []*link{m.from(listen)},
		relay: []*link{{wire{machine: m, port: portOf(c.relay.address)}, nil}}, step: filepath.Join(disks, name+".step")}
	if isolated {
		c.relay.knows(m.host, name)
	}
	database, err := url.Parse(c.primary.URL)
	if err != nil {
		t.Fatal(err)
	}
	database.Host = n.databases[0].proxy.address + "," + n.databases[1].proxy.address
	query := database.Query()
	query.Set("target_session_attrs", "read-write")
	database.RawQuery = query.Encode()
	n.env = []string{"FANFARE_DB=" + database.String(), "FANFARE_CLOCK_STEP=" + n.step}
	n.args = []string{"serve", "--data-dir", n.dir, "--listen", listen, "--public-url", "https://news.example.org", "--durability", "fsync", "--disk-floor", floor,
		"--node", name, "--node-url", "http://" + n.front[0].proxy.address, "--cluster-key-file", key, "--lease", "10s", "--drain-timeout", "10s", "--roles", roles}
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
	cmd := n.machine.command(binary, n.args...)
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

// lead returns the name of the node that became the leader last, "" without one.
func (c *cluster) lead() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.leads
}

// leader returns the node that became the leader last.
func (c *cluster) leader() *node { return c.named(c.lead()) }

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
