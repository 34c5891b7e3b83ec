package server

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/bus"
	"fanfare.dev/fanfare/internal/mailbox"
	"fanfare.dev/fanfare/internal/mailbox/hints"
	"fanfare.dev/fanfare/internal/store/database"
	"fanfare.dev/fanfare/internal/store/retry"
)

// Each node of a cluster serves the mailboxes of all subscribers over IMAP and LMTP, whether or not it leads. Its mailService has a database of its own,
// without the lease: the transactions of the nodes lock the accounts that they change. The components of the node that leads have another store, under
// the lease, for the channel inbox, the API with JMAP, submission and the background work. Both announce what they change to the stores of all nodes.

const (
	// mailAgain is the pause after a failed attempt to serve mailboxes, and mailSoon the one while another node is about to prepare the database.
	mailAgain = 15 * time.Second
	mailSoon  = 250 * time.Millisecond
)

// exchangeHints connects this node to the others, for news of mailboxes.
func (s *Server) exchangeHints(n *node) (err error) {
	n.hints = hints.New(s.log)
	peers, err := bus.OpenPeers(bus.PeersOptions{URL: s.config.NATS, Member: s.nats, Connected: n.hints.Lost})
	if err != nil {
		return err
	}
	s.onStopDo(peers.Close)
	s.background(func(ctx context.Context) { n.hints.Run(ctx, peers) })
	return peers.Subscribe(hints.Subject, n.hints.Receive)
}

// serveMailboxes serves mailboxes until ctx ends. It begins again when the database was taken over for a change of the schema.
func (s *Server) serveMailboxes(ctx context.Context, version string) {
	for ctx.Err() == nil {
		err := s.serveMailboxesOnce(ctx, version)
		switch {
		case ctx.Err() != nil || err == nil:
		case fanfare.CodeOf(err) == fanfare.Unavailable || retry.IsAway(err):
			s.log.Debug("this node does not serve mailboxes yet", "error", err)
			_ = retry.Sleep(ctx, mailSoon) // the loop sees the end of ctx
		default:
			s.log.Error("this node cannot serve mailboxes; other nodes can", "error", err, "again_in", mailAgain.String())
			_ = retry.Sleep(ctx, mailAgain) // as above
		}
	}
}

// serveMailboxesOnce serves mailboxes until ctx ends or the database must be opened again.
func (s *Server) serveMailboxesOnce(ctx context.Context, version string) error {
	n := s.node
	db, replaced, err := database.OpenShared(ctx, &s.config, version, s.log)
	if err != nil {
		return err
	}
	o := s.mailboxOptions()
	member := n.hints.Join()
	defer member.Leave()
	o.Announce = member.Announce
	store := mailbox.New(db, o)
	defer func() {
		store.Close()
		if err := db.Close(); err != nil {
			s.log.Debug("the database of mailboxes could not be closed", "error", err)
		}
	}()
	m, err := s.newMailService(ctx, mailOptions{store: store, to: s.recipientsOf(db, store), reading: true})
	if err != nil {
		return err
	}
	defer m.stop()
	following, end := context.WithCancel(ctx)
	followed := make(chan struct{})
	go func() { defer close(followed); store.Follow(following, member.Again()) }()
	defer func() { end(); <-followed }()
	member.Attach(store)
	n.mail.Store(m)
	defer n.mail.Store(nil)
	m.serve()
	select {
	case <-ctx.Done():
	case <-replaced:
		s.log.Info("this node opens the mailboxes again, because the schema of the database is about to change")
	}
	return nil
}

// mailMetrics are the metrics of the mailService that a node has at the moment.
type mailMetrics struct{ *node }

// Describe says that the metrics depend on the configuration and on the time.
func (mailMetrics) Describe(chan<- *prometheus.Desc) {}

// Collect reports the current values.
func (n mailMetrics) Collect(to chan<- prometheus.Metric) {
	m := n.mail.Load()
	if m == nil {
		return
	}
	var all collectorList
	m.registerMetrics(&all)
	for _, c := range all {
		c.Collect(to)
	}
}

// A collectorList is a prometheus.Registerer that lists the collectors.
type collectorList []prometheus.Collector

// Register adds a collector.
func (l *collectorList) Register(c prometheus.Collector) error { *l = append(*l, c); return nil }

// MustRegister adds collectors.
func (l *collectorList) MustRegister(c ...prometheus.Collector) { *l = append(*l, c...) }

// Unregister removes nothing.
func (l *collectorList) Unregister(prometheus.Collector) bool { return false }

var _ prometheus.Registerer = (*collectorList)(nil)
