package harness

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"strings"
	"time"
)

// StartWithNATS starts a server that is no node of a cluster, and uses a NATS server in
// another process.
func (l *Env) StartWithNATS(data string) (*Server, error) {
	nats, url, err := l.startNATS(data)
	if err != nil {
		return nil, err
	}
	s, err := l.StartServer(data, "--nats", url)
	if err != nil {
		return nil, err
	}
	s.NATS = nats
	return s, nil
}

// A Cluster is the leader of a cluster with what its nodes share: a schema of the
// database, a NATS server and the cluster key. The leader's Nodes are the other nodes.
type Cluster struct {
	*Server
	name     string
	database []string // environment
	args     []string // of all nodes
}

// StartCluster starts a node that leads. The roles are those of the setting roles. more
// are further arguments of all nodes.
func (l *Env) StartCluster(name, roles string, more ...string) (*Cluster, error) {
	nats, url, err := l.startNATS(name)
	if err != nil {
		return nil, err
	}
	key := l.File(name + ".key")
	if err := os.WriteFile(key, []byte("the cluster key of an experiment, which is not secret\n"), 0o600); err != nil {
		return nil, err
	}
	c := &Cluster{name: name, args: append([]string{"--nats", url, "--cluster-key-file", key}, more...)}
	if c.database, err = l.environment(name); err != nil {
		return nil, err
	}
	if c.Server, err = c.launchNode(l, "node-1", roles); err != nil {
		return nil, err
	}
	c.NATS = nats
	if err := c.awaitReady(); err != nil {
		return nil, err
	}
	return c, c.useAdminKey()
}

// Join starts further nodes with these roles, and waits until they deliver for the
// leader. The roles of each must include deliver.
func (c *Cluster) Join(roles ...string) error {
	waiting := map[string]*Server{}
	for _, r := range roles {
		name := fmt.Sprintf("node-%d", 2+len(c.Nodes))
		n, err := c.launchNode(c.Env, name, r)
		if err != nil {
			return err
		}
		c.Nodes = append(c.Nodes, n)
		waiting[name] = n
	}
	ctx, cancel := context.WithTimeout(c.Env.Ctx, startPatience)
	defer cancel()
	for {
		all, err := c.API.Nodes(ctx)
		if err != nil {
			return c.WithLog(err)
		}
		for i := range all.Nodes {
			n := waiting[all.Nodes[i].Name]
			if n == nil || !all.Nodes[i].Delivers {
				continue
			}
			if err := n.useKey(c.Key); err != nil {
				return err
			}
			delete(waiting, all.Nodes[i].Name)
		}
		if len(waiting) == 0 {
			return nil
		}
		if err := Pause(ctx, 20*time.Millisecond); err != nil {
			for _, n := range waiting {
				err = n.WithLog(fmt.Errorf("the node does not deliver: %w", err))
			}
			return err
		}
	}
}

// launchNode starts a node, and waits until it listens.
func (c *Cluster) launchNode(l *Env, name, roles string) (*Server, error) {
	address, err := freeAddress(l.Ctx)
	if err != nil {
		return nil, err
	}
	args := append([]string{"--node", name, "--listen", address, "--node-url", "http://" + address, "--roles", roles}, c.args...)
	return l.launch(c.name+"-"+name, c.database, args...)
}

// awaitReady waits until a node answers requests.
func (s *Server) awaitReady() error {
	ctx, cancel := context.WithTimeout(s.Env.Ctx, startPatience)
	defer cancel()
	for {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(s.URL, "/")+"/readyz", nil)
		if err != nil {
			return err
		}
		if answer, err := (&http.Client{Timeout: 30 * time.Second}).Do(request); err == nil {
			_ = answer.Body.Close() // only the status counts
			if answer.StatusCode == http.StatusOK {
				return nil
			}
		}
		if err := Pause(ctx, 20*time.Millisecond); err != nil {
			return s.WithLog(fmt.Errorf("the node is not ready: %w", err))
		}
	}
}
