package cluster

import (
	"time"

	"fanfare.dev/fanfare/internal/store/postgres"
)

// silentAfter is how long after its last heartbeat a node counts as silent.
const silentAfter = nameTTL

// NodeStatus is the state of a node.
type NodeStatus struct {
	postgres.Node
	Responding bool  // it has not been silent for too long
	Leader     bool  // it holds the lease of the leader
	Epoch      int64 // of that lease; 0 unless Leader
}

// Nodes returns the nodes as this node knows them, by name.
func (m *Member) Nodes() []NodeStatus {
	m.mu.Lock()
	nodes, read, leader, lease := m.nodes, m.read, m.leader, m.lease
	m.mu.Unlock()
	if lease != nil && !lease.Valid(0) {
		leader.Held = false
	}
	list := make([]NodeStatus, len(nodes))
	for i, n := range nodes {
		n.Silent += time.Since(read)
		list[i] = NodeStatus{Node: n, Responding: n.Silent <= silentAfter}
		if leader.Held && leader.Node == n.Name {
			list[i].Leader, list[i].Epoch = true, leader.Epoch
		}
	}
	return list
}
