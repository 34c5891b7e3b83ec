package server

import (
	"context"
	"net"
	"time"

	"fanfare.dev/fanfare/internal/cluster"
	"fanfare.dev/fanfare/internal/datadir/serverkeys"
	"fanfare.dev/fanfare/internal/pipeline/deliver/channels"
	"fanfare.dev/fanfare/internal/pipeline/deliver/remote"
	"fanfare.dev/fanfare/internal/store/postgres"
	"fanfare.dev/fanfare/internal/store/retry"
)

// linkAgain is the pause before a node tries again to open a link to the leader.
const linkAgain = time.Second

// deliver delivers for the node that leads, whenever that is another node, until ctx ends.
func (s *Server) deliver(ctx context.Context, o Options) {
	logged := ""
	for ctx.Err() == nil {
		leader, changed := s.node.member.Leader()
		if !leader.Held || leader.Node == s.config.Node {
			select {
			case <-changed:
			case <-ctx.Done():
			}
			continue
		}
		err := s.deliverFor(ctx, leader, changed, o)
		if err == nil || ctx.Err() != nil {
			continue
		}
		if text := err.Error(); text != logged {
			s.log.Warn("this node does not deliver: it has no link to the leading node; it will try again", "leader", leader.Node, "url", leader.URL, "error", text)
			logged = text
		}
		_ = retry.Sleep(ctx, linkAgain) // the loop checks ctx
	}
}

// deliverFor delivers for one leader until the link ends. It returns nil if the link worked.
func (s *Server) deliverFor(ctx context.Context, leader postgres.Holder, changed <-chan struct{}, o Options) error {
	keys, err := serverkeys.Read(s.config.DataDir)
	if err == nil {
		err = keys.Adopt(ctx, s.node.tables, s.node.key)
	}
	if err != nil {
		return err
	}
	conn, err := cluster.OpenLink(ctx, leader.URL, &cluster.LinkOptions{Name: s.config.Node, Version: o.Version, Protocol: remote.Protocol, Key: s.node.key, Roots: s.node.roots})
	if err != nil {
		return err
	}
	done := make(chan struct{})
	defer close(done)
	go s.closeUnderAnother(leader, changed, conn, done)
	s.log.Info("this node delivers for the leading node", "leader", leader.Node)
	drivers := channels.NodeDrivers{WebhookKey: keys.Webhooks.Bytes, Networks: s.config.Networks()}
	err = remote.NewAgent(remote.AgentOptions{Drivers: drivers.New, Drain: s.config.DrainTimeout, Logger: s.log}).Serve(ctx, conn)
	if err != nil {
		s.log.Info("the link to the leading node has ended", "leader", leader.Node, "reason", err.Error())
	}
	return nil
}

// closeUnderAnother closes a link when another node leads, because the old leader can no longer record outcomes.
func (s *Server) closeUnderAnother(leader postgres.Holder, changed <-chan struct{}, conn net.Conn, done <-chan struct{}) {
	for {
		select {
		case <-changed:
		case <-done:
			return
		}
		var now postgres.Holder
		if now, changed = s.node.member.Leader(); now.Held && now.Epoch != leader.Epoch {
			_ = conn.Close() // an error has no effect
			return
		}
	}
}
