package cluster

import (
	"context"
	"crypto/x509"
	"log/slog"
	"net"
	"time"

	"fanfare.dev/fanfare/internal/store/postgres"
)

// linkAgain is the pause before a node tries again to open a link to the leader.
const linkAgain = time.Second

// A Duty is the work that a node does for the node that leads, over a link.
type Duty struct {
	Name     string // for the log: what the node does for the leader
	Protocol string
	Run      func(ctx context.Context, conn net.Conn) error // until the link ends
}

// A DutyRunner performs duties for the node that leads.
type DutyRunner struct {
	Member  *Member
	Key     *Key
	Roots   *x509.CertPool // for the certificates of the other nodes
	Version string
	Logger  *slog.Logger
}

// Run performs a duty for the node that leads, whenever that is another node, until ctx ends.
func (s *DutyRunner) Run(ctx context.Context, d Duty) {
	logged := ""
	for ctx.Err() == nil {
		leader, changed := s.Member.Leader()
		if !leader.Held || leader.Node == s.Member.Name() {
			select {
			case <-changed:
			case <-ctx.Done():
			}
			continue
		}
		err := s.serveLeader(ctx, d, leader, changed)
		if err == nil || ctx.Err() != nil {
			continue
		}
		if text := err.Error(); text != logged {
			s.Logger.Warn("this node has no link to the leader; it will try again", "duty", d.Name, "leader", leader.Node, "url", leader.URL, "error", text)
			logged = text
		}
		select {
		case <-time.After(linkAgain):
		case <-ctx.Done():
		}
	}
}

// serveLeader performs a duty for one leader until the link ends. It returns nil if the link worked.
func (s *DutyRunner) serveLeader(ctx context.Context, d Duty, leader postgres.Holder, changed <-chan struct{}) error {
	conn, err := OpenLink(ctx, leader.URL, &LinkOptions{Name: s.Member.Name(), Version: s.Version, Protocol: d.Protocol, Key: s.Key, Roots: s.Roots})
	if err != nil {
		return err
	}
	done := make(chan struct{})
	defer close(done)
	go s.closeUnderAnother(leader, changed, conn, done)
	s.Logger.Info("this node has a link to the leader", "duty", d.Name, "leader", leader.Node)
	began := time.Now()
	err = d.Run(ctx, conn)
	_ = conn.Close() // it may not have begun
	if err != nil && time.Since(began) < linkAgain {
		return err
	}
	if err != nil {
		s.Logger.Info("the link to the leader has ended", "duty", d.Name, "leader", leader.Node, "reason", err.Error())
	}
	return nil
}

// closeUnderAnother closes a link when another node leads, because the old leader can no longer record outcomes.
func (s *DutyRunner) closeUnderAnother(leader postgres.Holder, changed <-chan struct{}, conn net.Conn, done <-chan struct{}) {
	for {
		select {
		case <-changed:
		case <-done:
			return
		}
		var now postgres.Holder
		if now, changed = s.Member.Leader(); now.Held && now.Epoch != leader.Epoch {
			_ = conn.Close() // an error has no effect
			return
		}
	}
}
