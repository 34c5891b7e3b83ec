package wire

import (
	"slices"
	"time"
)

// Nodes are the nodes of a cluster.
type Nodes struct {
	Clustered bool    `json:"clustered" doc:"false: the server is not a node of a cluster, and nodes is empty"`
	Nodes     []Node  `json:"nodes" doc:"nodes that sent a heartbeat within the last 24 hours and have not stopped since, by name"`
	Bus       *Copies `json:"bus,omitempty" doc:"NATS servers that store the events and batches in progress; absent while they do not respond"`
}

// Copies describe the NATS servers that store the streams EVENTS and BATCHES.
type Copies struct {
	Embedded bool   `json:"embedded" doc:"the NATS servers run inside the nodes"`
	Replicas int    `json:"replicas" doc:"number of NATS servers that should have a copy; with 1, the failure of this server stops the cluster"`
	Current  int    `json:"current" doc:"number of NATS servers that respond and have a complete copy"`
	Sync     string `json:"sync" enum:"always,interval,unknown" doc:"when the NATS servers sync messages to the disk. always: before they acknowledge them. interval: later, so that a power loss of several servers can lose messages. unknown: the servers are external, and their setting sync_interval cannot be read"`
}

// A Node is a server that belongs to a cluster. Its times are those of the database.
type Node struct {
	Name          string    `json:"name" doc:"name in the setting node"`
	URL           string    `json:"url" doc:"URL at which the other nodes reach it"`
	Version       string    `json:"version" doc:"version of Fanfare that it runs"`
	Roles         []string  `json:"roles" doc:"values of its setting roles: all, or one or more of lead, deliver, match and api"`
	StartedAt     time.Time `json:"started_at" doc:"when it registered, on the clock of the database"`
	LastSeenAt    time.Time `json:"last_seen_at" doc:"its last heartbeat, on the clock of the database; a node sends one every 2 seconds"`
	SilentSeconds float64   `json:"silent_seconds" doc:"time since its last heartbeat, in seconds"`
	Responding    bool      `json:"responding" doc:"false: it has been silent for more than 15 seconds"`
	ClockSkewMS   float64   `json:"clock_skew_ms" doc:"how far its clock is ahead of the clock of the database, in milliseconds; negative if it is behind; measured with the last heartbeat, to the precision of a round trip"`
	Leader        bool      `json:"leader" doc:"it holds the lease of the leader: it processes all events and decides when each message is sent"`
	Delivers      bool      `json:"delivers" doc:"it sends messages: it leads and has the role deliver, or has a link to the leader"`
	Matches       bool      `json:"matches" doc:"it evaluates conditions for the leader, and its copy of the matching index is complete"`
	Connections   int       `json:"connections" doc:"number of its open connections to relays and receivers"`
	LeaseEpoch    int64     `json:"lease_epoch,omitempty" doc:"number of the lease of the leader, which increases with each change of the leader; only for the leader"`
}

// CanLead reports whether the node can become the leader. Nodes with an older version report no roles, and can lead.
func (n *Node) CanLead() bool {
	return len(n.Roles) == 0 || slices.Contains(n.Roles, "all") || slices.Contains(n.Roles, "lead")
}

// A Cluster summarizes the nodes of a cluster.
type Cluster struct {
	Leader   string   `json:"leader,omitempty" doc:"name of the node that leads; absent while the cluster has no leader"`
	Standbys int      `json:"standbys" doc:"number of other nodes that respond and can take over"`
	Silent   []string `json:"silent,omitempty" doc:"names of the nodes that have been silent for more than 15 seconds"`
	Bus      *Copies  `json:"bus,omitempty" doc:"NATS servers that store the events and batches in progress; absent while they do not respond"`
}

// Cluster summarizes the nodes; nil for a server that is not a node of a cluster.
func (n *Nodes) Cluster() *Cluster {
	if !n.Clustered {
		return nil
	}
	c := &Cluster{Bus: n.Bus}
	for i := range n.Nodes {
		switch node := &n.Nodes[i]; {
		case node.Leader:
			c.Leader = node.Name
		case node.Responding && node.CanLead():
			c.Standbys++
		}
		if !n.Nodes[i].Responding {
			c.Silent = append(c.Silent, n.Nodes[i].Name)
		}
	}
	return c
}
