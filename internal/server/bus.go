package server

import (
	"cmp"
	"context"
	"crypto/tls"
	"path/filepath"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/admin/recovery"
	"fanfare.dev/fanfare/internal/bus"
	"fanfare.dev/fanfare/internal/datadir"
	"fanfare.dev/fanfare/internal/session/sessionlog"
	"fanfare.dev/fanfare/internal/store/retry"
)

// quorumPatience is how long a node that has acquired the lease waits until the embedded NATS servers have a quorum. Then another
// node, which may reach more servers, can take over.
const quorumPatience = 30 * time.Second

// folderPatience is how long a start waits for a quorum to check the folder of an earlier bus.
const folderPatience = 10 * time.Second

// startNATS starts the embedded NATS server of a node, which stores the bus together with those of other nodes. It runs until
// Stop, whether or not the node leads.
func (s *Server) startNATS(ctx context.Context, n *node) (err error) {
	var encrypted *tls.Config
	if s.config.TLSCert != "" {
		pair, err := tls.LoadX509KeyPair(s.config.TLSCert, s.config.TLSKey)
		if err != nil {
			return &fanfare.Error{Code: fanfare.Invalid, Pointer: "/tls_cert", Message: "the certificate cannot be used: " + err.Error(), Hint: "check tls_cert and tls_key"}
		}
		encrypted = &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}, RootCAs: n.roots}
	}
	s.nats, err = bus.StartMember(bus.MemberOptions{
		Name: s.config.Node, Dir: filepath.Join(s.config.DataDir, datadir.BusCluster), Listen: s.config.RouteListen(), Routes: s.config.ClusterRoutes,
		Secret: n.key.RouteSecret(s.config.ClusterRoutes), TLS: encrypted, Sync: s.config.Fsync(), Logger: s.log,
	})
	if err != nil {
		return err
	}
	s.onStop(s.nats.Stop)
	s.log.Info("the embedded NATS server is running", "listen", s.config.RouteListen(), "routes", s.config.ClusterRoutes, "encrypted", encrypted != nil)
	return s.nats.CheckFolder(ctx, filepath.Join(s.config.DataDir, datadir.Bus), folderPatience)
}

// awaitNATS waits until the embedded NATS servers have a quorum.
func (c *components) awaitNATS(ctx context.Context) error {
	if err := c.nats.Ready(); err != nil {
		c.log.Warn("this node leads, and waits for the embedded NATS servers of the other nodes", "reason", err, "at_most", quorumPatience.String())
	}
	return c.nats.Await(ctx, quorumPatience)
}

// leaderWaits returns why this node, which holds the lease, does not lead yet; nil if its start only needs time.
func (s *Server) leaderWaits() error {
	if s.nats == nil {
		return nil
	}
	return s.nats.Ready()
}

// openBus opens the bus. After a restore, it holds the open deliveries.
func (c *components) openBus(ctx context.Context) (err error) {
	c.progress.Begin("open the bus", 0)
	options := bus.Options{
		Dir: filepath.Join(c.dir, datadir.Bus), URL: c.config.NATS, Member: c.nats, Sync: c.config.Fsync(), Lease: c.config.Lease,
		Replicas: c.config.StreamReplicas(), Matches: c.node != nil,
		FirstSeq: recovery.FirstGroup(c.highest, c.backupNote), LastSeq: c.highest.Stream(), Logger: c.log,
	}
	switch {
	case c.nats != nil:
		if err := c.awaitNATS(ctx); err != nil {
			return err
		}
	case datadir.Has(c.dir, datadir.BusCluster):
		return &fanfare.Error{Code: fanfare.Conflict, Pointer: "/cluster_routes", Message: "the data directory " + c.dir + " belongs to a node whose bus is stored by the embedded NATS servers of its cluster",
			Hint: "set node and cluster_routes to their earlier values; to give up the events and batches on that bus, remove the folder " + datadir.BusCluster}
	}
	if c.busLost, err = c.lostBus(); err != nil {
		return err
	}
	if c.nats == nil && c.config.NATS == "" {
		if c.powerLost, err = bus.PowerLost(options.Dir); err != nil {
			return err
		}
	}
	if options.PowerLost = c.powerLost; c.powerLost {
		if err := recovery.MarkBusLost(c.dir); err != nil {
			return err
		}
		c.busLost = true
	}
	options.Existing = c.highest > 0 && !c.busLost && !c.backupNote.New()
	if c.bus, err = bus.Open(ctx, options); err != nil {
		return err
	}
	c.onStop(c.bus.Close)
	c.leaveBus = c.bus.Close
	if !c.config.Fsync() {
		c.onStopDo(c.syncAtStop) // when nothing writes any more
		c.background(c.syncRegularly)
	}
	c.recovery = recovery.Recovery{Dir: c.dir, Note: c.backupNote, Store: c.store, Registry: c.registry, Bus: c.bus}
	if !c.backupNote.New() {
		return nil
	}
	if err := c.skipNumbers(ctx); err != nil {
		return err
	}
	c.progress.Begin("fill the bus from the backup", 0)
	if err := c.recovery.Restore(ctx, c.days, recovery.FirstGroup(c.highest, c.backupNote)); err != nil {
		return err
	}
	c.log.Warn("restored from a backup: everything is paused", "backup", c.backupNote.Backup, "broadcasts", c.backupNote.Broadcasts, "unsettled", c.backupNote.Deliveries, "unmatched", c.backupNote.Unmatched)
	return nil
}

// skipNumbers skips the numbers of messages in mailboxes and of sessions that the database may have forgotten.
func (c *components) skipNumbers(ctx context.Context) error {
	if err := c.mailboxes.SkipNumbers(ctx); err != nil {
		return err
	}
	return sessionlog.New(c.db).SkipNumbers(ctx)
}

// defaultSyncInterval is for configurations that do not come from a file or flags.
const defaultSyncInterval = time.Second

// syncRegularly limits what a loss of power destroys in durability relaxed.
func (c *components) syncRegularly(ctx context.Context) {
	ticker := time.NewTicker(cmp.Or(c.config.SyncInterval, defaultSyncInterval))
	defer ticker.Stop()
	for failed := false; ; {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		err := c.bus.SyncPoint(ctx, c.db.SyncAll)
		if err != nil && ctx.Err() == nil && !failed {
			c.log.Log(ctx, retry.LogLevel(err), "cannot sync the data to the disk; retrying", "error", err)
		}
		failed = err != nil
	}
}

// stopSyncLimit is how long a stop waits for a database that does not answer.
const stopSyncLimit = 10 * time.Second

// syncAtStop makes the stop a clean end. If that fails, the next start assumes what it assumes after a kill.
func (c *components) syncAtStop() {
	ctx, cancel := context.WithTimeout(context.Background(), stopSyncLimit)
	defer cancel()
	if err := c.bus.SyncPoint(ctx, c.db.SyncAll); err != nil {
		c.log.Warn("cannot sync the data to the disk before the end", "error", err)
	}
}

// lostBus reports whether the bus was lost, and the record was not.
func (c *components) lostBus() (bool, error) {
	if c.backupNote.New() {
		return false, nil
	}
	return recovery.BusLost(c.dir, c.config.NATS != "" || c.nats != nil, c.highest)
}
