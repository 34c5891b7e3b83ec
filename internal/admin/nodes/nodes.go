// Package nodes describes the nodes of a cluster for the API and for metrics. Member says which nodes there are; the hub and
// the feed of the node that leads say what the others do for it.
package nodes

import (
	"context"
	"slices"
	"time"

	"fanfare.dev/fanfare/internal/bus"
	"fanfare.dev/fanfare/internal/cluster"
	"fanfare.dev/fanfare/internal/httpapi/wire"
	"fanfare.dev/fanfare/internal/pipeline/deliver/remote"
	"fanfare.dev/fanfare/internal/pipeline/match/replica"
)

// A Leader lists the nodes for the node that leads.
type Leader struct {
	Member      *cluster.Member
	Hub         *remote.Hub
	Feed        *replica.Feed
	Bus         *bus.Bus
	Delivers    bool                  // the leader delivers itself
	Connections func() map[string]int // open ones by node; "" is the leader
	Sync        string                // when the NATS servers sync their files
	Embedded    bool                  // each node has a NATS server
}

// List returns the nodes.
func (l *Leader) List() wire.Nodes {
	list, connections := l.Member.Nodes(), l.Connections()
	answer := wire.Nodes{Clustered: true, Nodes: make([]wire.Node, len(list))}
	for i := range list {
		n := &list[i]
		open := connections[n.Name]
		if n.Leader {
			open = connections[""]
		}
		answer.Nodes[i] = wire.Node{
			Name: n.Name, Roles: n.Roles, URL: n.URL, Version: n.Version, StartedAt: n.Started, LastSeenAt: n.Seen, Responding: n.Responding, Leader: n.Leader, LeaseEpoch: n.Epoch,
			SilentSeconds: n.Silent.Round(time.Millisecond).Seconds(), ClockSkewMS: float64(n.Skew.Microseconds()) / 1000,
			Delivers: n.Leader && l.Delivers || l.delivers(n.Name), Matches: l.matches(n.Name), Connections: open,
		}
	}
	answer.Bus = l.copies()
	return answer
}

// copiesLimit is how long a list of nodes waits for the NATS servers.
const copiesLimit = 2 * time.Second

// copies describes the NATS servers; nil if they do not respond.
func (l *Leader) copies() *wire.Copies {
	ctx, cancel := context.WithTimeout(context.Background(), copiesLimit)
	defer cancel()
	copies, err := l.Bus.Copies(ctx)
	if err != nil {
		return nil
	}
	return &wire.Copies{Embedded: l.Embedded, Replicas: copies.Replicas, Current: copies.Current, Sync: l.Sync}
}

// delivers reports whether another node delivers for this one.
func (l *Leader) delivers(name string) bool {
	return slices.ContainsFunc(l.Hub.Nodes(), func(n *remote.Node) bool { return n.Name() == name })
}

// matches reports whether another node has a complete copy of the matching index.
func (l *Leader) matches(name string) bool {
	return slices.ContainsFunc(l.Feed.Nodes(), func(n *replica.Node) bool { return n.Name() == name })
}
