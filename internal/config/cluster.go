package config

import (
	"crypto/x509"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"fanfare.dev/fanfare"
)

// minClusterKey is the minimum length of a cluster key.
const minClusterKey = 32

// maxReplicas is the maximum number of replicas of a stream in NATS.
const maxReplicas = 5

var nodeName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9.-]{0,62}$`)

// Clustered reports whether this server is a node of a cluster.
func (c *Config) Clustered() bool { return c.Node != "" }

// The roles of a node.
const (
	roleAll     = "all"
	roleLead    = "lead"
	roleDeliver = "deliver"
	roleMatch   = "match"
	roleAPI     = "api"
)

// Leads reports whether this node can become the leader.
func (c *Config) Leads() bool { return c.has(roleLead) }

// Delivers reports whether this node opens connections to relays and receivers.
func (c *Config) Delivers() bool { return c.has(roleDeliver) }

// Matches reports whether this node matches events for the leader.
func (c *Config) Matches() bool { return slices.Contains(c.Roles, roleMatch) }

func (c *Config) has(role string) bool {
	return slices.Contains(c.Roles, role) || slices.Contains(c.Roles, roleAll)
}

// validateRoles checks the roles of a node.
func (c *Config) validateRoles(refuse func(key, hint, format string, args ...any)) {
	const hint = "use all, or one or more of lead, deliver, match and api"
	if len(c.Roles) == 0 {
		refuse("roles", hint, "must name at least one role")
	}
	for _, r := range c.Roles {
		switch r {
		case roleAll:
			if len(c.Roles) > 1 {
				refuse("roles", hint, "all must be the only role")
			}
		case roleLead, roleDeliver, roleMatch, roleAPI:
			if !c.Clustered() {
				refuse("roles", "use all, or set node to make this server a node of a cluster", "the role %q has no effect without node", r)
			}
		default:
			refuse("roles", hint, "the role %q does not exist", r)
		}
	}
}

// ClusterKey returns the cluster key.
func (c *Config) ClusterKey() string { return c.clusterKey }

// URLOfNode returns the URL at which the other nodes reach this node.
func (c *Config) URLOfNode() string {
	if c.NodeURL != "" {
		return c.NodeURL
	}
	scheme := "http"
	if c.TLSCert != "" {
		scheme = "https"
	}
	return scheme + "://" + c.Listen
}

// NodeRoots reads the certificate authorities of the other nodes; nil means those of the system.
func (c *Config) NodeRoots() (*x509.CertPool, error) {
	if c.NodeCA == "" {
		return nil, nil
	}
	pem, err := os.ReadFile(c.NodeCA)
	roots := x509.NewCertPool()
	if err == nil && !roots.AppendCertsFromPEM(pem) {
		err = fmt.Errorf("%s contains no certificate", c.NodeCA)
	}
	if err != nil {
		return nil, &fanfare.Error{Code: fanfare.Invalid, Pointer: "/node_ca", Message: err.Error(), Hint: "set it to a PEM file with certificates"}
	}
	return roots, nil
}

// validateCluster checks the settings of a node.
func (c *Config) validateCluster(refuse func(key, hint, format string, args ...any)) {
	if c.Replicas < 0 || c.Replicas > maxReplicas {
		refuse("replicas", "use 1 to 5, or 0 to keep the number that the streams have", "%d is out of range", c.Replicas)
	}
	if c.Replicas > 0 && c.NATS == "" && !c.EmbeddedCluster() {
		refuse("replicas", "set nats to the URL of a NATS cluster, or remove replicas", "has no effect without nats or cluster_routes")
	}
	c.validateRoutes(refuse)
	if !c.Clustered() {
		for _, of := range []struct{ key, value string }{{"node_url", c.NodeURL}, {"node_ca", c.NodeCA}, {"cluster_key_file", c.ClusterKeyFile}, {"cluster_routes", strings.Join(c.ClusterRoutes, ",")}} {
			if of.value != "" {
				refuse(of.key, "set node to the name of this node, or remove "+of.key, "has no effect without node")
			}
		}
		return
	}
	if !nodeName.MatchString(c.Node) {
		refuse("node", "use a name such as node-1: up to 63 letters, digits, dots and hyphens", "%q is not a valid node name", c.Node)
	}
	if c.SQLite() {
		refuse("db", "set db to a PostgreSQL database that all nodes use", "must be set for a node of a cluster")
	}
	switch {
	case c.NATS != "" && c.EmbeddedCluster():
		refuse("cluster_routes", "remove nats to use the embedded NATS servers, or remove cluster_routes to use the servers at nats", "cannot be set together with nats")
	case c.NATS == "" && !c.EmbeddedCluster() && c.Leads():
		refuse("nats", "set nats to the URL of a NATS server or cluster that all nodes use, or set cluster_routes to let the nodes run NATS themselves", "nats or cluster_routes must be set for a node of a cluster")
	}
	if len(c.clusterKey) < minClusterKey {
		refuse("cluster_key_file", "write the output of openssl rand -base64 32 into a file, and copy it to all nodes", "must name a file whose first line has at least %d characters", minClusterKey)
	}
	readable(refuse, "node_ca", c.NodeCA)
	c.validateNodeURL(refuse)
}

// minRoutes is the minimum number of embedded servers: two servers stop when one of them does.
const minRoutes = 3

// EmbeddedCluster reports whether the embedded NATS server of this node is a member of a cluster.
func (c *Config) EmbeddedCluster() bool { return len(c.ClusterRoutes) > 0 }

// StreamReplicas returns the number of copies of each stream; 0: what the streams have.
func (c *Config) StreamReplicas() int {
	if c.Replicas == 0 && c.EmbeddedCluster() {
		return minRoutes
	}
	return c.Replicas
}

// RouteListen returns the address at which the embedded NATS server accepts the other ones, or "" if it is not known.
func (c *Config) RouteListen() string {
	if c.ClusterListen != "" {
		return c.ClusterListen
	}
	self, err := url.Parse(c.URLOfNode())
	if err != nil {
		return ""
	}
	address := ""
	for _, route := range c.ClusterRoutes {
		if host, port, err := net.SplitHostPort(route); err == nil && host == self.Hostname() {
			if address != "" {
				return "" // several nodes have this host
			}
			address = net.JoinHostPort("0.0.0.0", port)
		}
	}
	return address
}

// validateRoutes checks the settings of the embedded NATS servers of a cluster.
func (c *Config) validateRoutes(refuse func(key, hint, format string, args ...any)) {
	if !c.EmbeddedCluster() {
		if c.ClusterListen != "" {
			refuse("cluster_listen", "set cluster_routes to the addresses of all embedded NATS servers, or remove cluster_listen", "has no effect without cluster_routes")
		}
		return
	}
	const hint = "list the addresses of at least three nodes, such as node-1.example.org:6222,node-2.example.org:6222,node-3.example.org:6222"
	seen := map[string]bool{}
	for _, route := range c.ClusterRoutes {
		host, port, err := net.SplitHostPort(route)
		switch {
		case err != nil || !validPort(port) || host == "" || strings.ContainsAny(host, " /@"):
			refuse("cluster_routes", hint, "%q is not an address, host:port", route)
		case seen[route]:
			refuse("cluster_routes", hint, "%s is listed twice", route)
		}
		seen[route] = true
	}
	if len(seen) < minRoutes {
		refuse("cluster_routes", hint, "lists %d servers, but must list at least %d: with fewer, the failure of one stops the bus", len(seen), minRoutes)
	}
	if c.Replicas > len(seen) {
		refuse("replicas", "use at most the number of addresses in cluster_routes", "%d replicas need as many servers, but cluster_routes lists only %d", c.Replicas, len(seen))
	}
	listen := c.RouteListen()
	if listen == "" {
		refuse("cluster_listen", "set it to the address at which this node accepts connections from the other NATS servers, such as 0.0.0.0:6222", "must be set, because cluster_routes does not contain exactly one address with the host of node_url")
		return
	}
	if _, port, err := net.SplitHostPort(listen); err != nil || !validPort(port) {
		refuse("cluster_listen", "use host:port, such as 0.0.0.0:6222", "%q is not an address", c.ClusterListen)
	}
}

func validPort(text string) bool {
	n, err := strconv.ParseUint(text, 10, 16)
	return err == nil && n > 0
}

func (c *Config) validateNodeURL(refuse func(key, hint, format string, args ...any)) {
	const hint = "set node_url to a URL that the other nodes can reach, such as https://node-1.example.org:8085"
	if c.NodeURL != "" {
		u, err := url.Parse(c.NodeURL)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.Path != "" && u.Path != "/" || u.RawQuery != "" || u.Fragment != "" || u.User != nil {
			refuse("node_url", hint, "%q is not an http or https URL of a host", c.NodeURL)
		}
		return
	}
	host, port, err := net.SplitHostPort(c.Listen)
	if err != nil {
		return // listen is refused
	}
	ip, err := netip.ParseAddr(host)
	if port == "0" || host == "" || host == "localhost" || err == nil && (ip.IsUnspecified() || ip.IsLoopback()) {
		refuse("node_url", hint, "must be set, because the other nodes cannot reach %s", c.Listen)
	}
}
