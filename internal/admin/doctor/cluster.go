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
