package doctor

import (
	"context"
	"time"
)

// maxNodeAhead is the difference between the clocks of a node and the database above which doctor warns.
const maxNodeAhead = time.Second

// cluster checks what a node of a cluster needs from the other nodes and from PostgreSQL.
func (o *Options) cluster(ctx context.Context, r *Report) {
	if !o.Config.Clustered() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if address := o.Config.URLOfNode(); o.Node != nil {
		if err := o.Node(ctx); err != nil {
			r.warn("node_url", "start the server, or set node_url to the URL at which the other nodes reach it; for https, node_ca must name the authority of its certificate", "%s does not respond: %v", address, err)
		} else {
			r.ok("node_url", "%s responds", address)
		}
	}
}

// failover checks whether a cluster survives the loss of the PostgreSQL server.
func (o *Options) failover(r *Report, d *Database) {
	if !o.Config.Clustered() {
		return
	}
	if d.Ahead.Abs() > maxNodeAhead && d.Ahead.Abs() <= maxAhead {
		r.warn("clock", "run chrony or systemd-timesyncd on both machines", "the clock of the database differs by %v; the nodes of a cluster need less than 1s", d.Ahead.Round(100*time.Millisecond))
	}
	if d.Hosts < 2 {
		r.warn("standby", "name all hosts: postgres://user@host-1:5432,host-2:5432/database?target_session_attrs=read-write", "db names one host: after the promotion of a standby, the nodes do not find the new primary")
	}
	switch {
	case d.SyncHidden:
		r.warn("standby", "GRANT pg_read_all_stats TO the user of the URL", "this user cannot read whether a standby is synchronous")
	case d.SyncStandbys == 0:
		r.warn("standby", "set synchronous_standby_names in postgresql.conf", "no standby is synchronous: the promotion of a standby may lose acknowledged data")
	default:
		r.ok("standby", "synchronous standbys: %d", d.SyncStandbys)
	}
}

// copies reports how many NATS servers store the bus, and whether they sync.
func (o *Options) copies(r *Report, b *Copies) {
	if !o.Config.Clustered() {
		return
	}
	switch {
	case b == nil:
		r.warn("bus", "start the other nodes, or the NATS servers", "the NATS servers of the cluster do not respond")
		return
	case b.Replicas < 2:
		r.warn("bus", "use a NATS cluster of three servers, and set replicas to 3", "the bus has 1 copy: it is not highly available")
	case b.Current < b.Replicas:
		r.warn("bus", "start the missing NATS servers, and wait until they have caught up", "%d of %d copies of the bus are current", b.Current, b.Replicas)
	default:
		r.ok("bus", "%d of %d copies of the bus are current", b.Current, b.Replicas)
	}
	switch {
	case !o.Config.Fsync():
		r.warn("bus sync", "set durability to fsync on all nodes", "durability is relaxed: a power loss of several NATS servers can lose acknowledged events")
	case !b.Embedded:
		r.ok("bus sync", "not checked: with external NATS servers, durability fsync requires sync_interval: always in their configuration")
	case b.Synced:
		r.ok("bus sync", "the embedded NATS servers sync before they acknowledge")
	default:
		r.warn("bus sync", "set durability to fsync on all nodes, and restart them one by one", "the leader runs with durability relaxed, unlike this node")
	}
}
