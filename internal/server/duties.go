package server

import (
	"context"
	"net"
	"time"

	"fanfare.dev/fanfare/internal/cluster"
	"fanfare.dev/fanfare/internal/datadir/serverkeys"
	"fanfare.dev/fanfare/internal/pipeline/deliver/channels"
	"fanfare.dev/fanfare/internal/pipeline/deliver/remote"
	"fanfare.dev/fanfare/internal/pipeline/match/replica"
	"fanfare.dev/fanfare/internal/store/postgres"
	"fanfare.dev/fanfare/internal/store/retry"
)

// linkAgain is the pause before a node tries again to open a link to the leader.
const linkAgain = time.Second

// A duty is the work that this node does for the node that leads, over a link.
type duty struct {
	name     string // for the log: what this node does for the leader
	protocol string
	run      func(ctx context.Context, conn net.Conn) error // until the link ends
}

// delivery returns the duty of a node that delivers.
func (s *Server) delivery() duty {
	return duty{"delivers", remote.Protocol, func(ctx context.Context, conn net.Conn) error {
		keys, err := serverkeys.Read(s.config.DataDir)
		if err == nil {
			err = keys.Adopt(ctx, s.node.tables, s.node.key)
		}
		if err != nil {
			return err
		}
		node := &channels.Node{WebhookKey: keys.Webhooks.Bytes, Networks: s.config.Networks(), Clock: s.clock}
		return remote.NewAgent(remote.AgentOptions{Drivers: node.Drivers, Sign: node.Sign, Drain: s.config.DrainTimeout, Logger: s.log}).Serve(ctx, conn)
	}}
}

// matching returns the duty of a node that matches events.
func (s *Server) matching() duty {
	return duty{"matches events", replica.Protocol, func(ctx context.Context, conn net.Conn) error { return replica.Serve(ctx, conn, s.log) }}
}

// serve performs a duty for the node that leads, whenever that is another node, until ctx ends.
func (s *Server) serve(ctx context.Context, d duty, o Options) {
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
		err := s.serveLeader(ctx, d, leader, changed, o)
		if err == nil || ctx.Err() != nil {
			continue
		}
		if text := err.Error(); text != logged {
			s.log.Warn("this node has no link to the leading node; it will try again", "duty", d.name, "leader", leader.Node, "url", leader.URL, "error", text)
			logged = text
		}
		_ = retry.Sleep(ctx, linkAgain) // the loop checks ctx
	}
}

// serveLeader performs a duty for one leader until the link ends. It returns nil if the link worked.
func (s *Server) serveLeader(ctx context.Context, d duty, leader postgres.Holder, changed <-chan struct{}, o Options) error {
	conn, err := cluster.OpenLink(ctx, leader.URL, &cluster.LinkOptions{Name: s.config.Node, Version: o.Version, Protocol: d.protocol, Key: s.node.key, Roots: s.node.roots})
	if err != nil {
		return err
	}
	done := make(chan struct{})
	defer close(done)
	go s.closeUnderAnother(leader, changed, conn, done)
	s.log.Info("this node has a link to the leading node", "duty", d.name, "leader", leader.Node)
	began := time.Now()
	err = d.run(ctx, conn)
	_ = conn.Close() // it may not have begun
	if err != nil && time.Since(began) < linkAgain {
		return err
	}
	if err != nil {
		s.log.Info("the link to the leading node has ended", "duty", d.name, "leader", leader.Node, "reason", err.Error())
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
