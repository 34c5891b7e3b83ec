package remote

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"

	"fanfare.dev/fanfare/internal/cluster/link"
	"fanfare.dev/fanfare/internal/pipeline/deliver/driver"
)

// AgentOptions are the dependencies of an Agent.
type AgentOptions struct {
	// Drivers creates the drivers of a channel, by relay, from the settings that the leader passed to NewChannel. When
	// abort ends, they close their connections immediately, also during a message.
	Drivers func(abort context.Context, settings []byte) (map[string]driver.Driver, error)
	// Sign signs a digest with the DKIM key that has a public key. It returns nil if this node does not have the key. It is
	// nil if the node signs nothing.
	Sign   func(public []byte, digest *[sha256.Size]byte) []byte
	Drain  time.Duration // how long an orderly end waits for the messages that are being sent
	Logger *slog.Logger

	silence time.Duration // 0: link.Silence; for tests
}

// An Agent is the node's side of links: it runs drivers for the leader.
type Agent struct {
	options AgentOptions
}

// NewAgent returns an Agent without a link.
func NewAgent(o AgentOptions) *Agent {
	if o.silence == 0 {
		o.silence = link.Silence
	}
	return &Agent{options: o}
}

// Serve delivers for the leader at the other end of an authenticated connection, until the link ends. When ctx ends, it
// takes no more messages, finishes those that are being sent, and ends the link.
func (a *Agent) Serve(ctx context.Context, conn net.Conn) error {
	s := &session{agent: a, channels: map[uint16]*channelDrivers{}, queues: map[uint32]*nodeQueue{}, signers: newSigners()}
	s.link = link.New(context.WithoutCancel(ctx), conn, a.options.silence)
	left := make(chan struct{})
	defer context.AfterFunc(ctx, func() {
		defer close(left)
		s.leave()
	})()
	err := s.link.Run(s.handle)
	s.ended()
	s.running.Wait()
	if ctx.Err() != nil {
		<-left
		return nil
	}
	return err
}

// A session is one link of an agent.
type session struct {
	agent   *Agent
	link    *link.Link
	running sync.WaitGroup // of drivers
	signers chan struct{}  // one for each signature that may be made at the same time

	mu       sync.Mutex
	channels map[uint16]*channelDrivers
	queues   map[uint32]*nodeQueue
	over     bool // the link has ended
}

// channelDrivers are the drivers of one version of the settings of a channel.
type channelDrivers struct {
	version  uint32
	settings []byte
	by       map[string]driver.Driver // by relay
	err      error                    // why there are none
	tried    time.Time                // when they were created last
}

// errLeaving ends a link after an orderly end.
var errLeaving = errors.New("this node no longer accepts messages")

// leave ends the link when no driver runs any more, or after the drain time.
func (s *session) leave() {
	s.link.Send(kindLeave, 0)
	for deadline := time.Now().Add(s.agent.options.Drain); time.Now().Before(deadline) && s.link.Context().Err() == nil; {
		s.mu.Lock()
		idle := len(s.queues) == 0
		s.mu.Unlock()
		if idle {
			break
		}
		<-time.After(10 * time.Millisecond)
	}
	s.link.End(errLeaving)
}

// handle handles a frame of the leader.
func (s *session) handle(f link.Frame) error {
	switch f.Kind {
	case kindChannel:
		return s.setChannel(f.Payload)
	case kindOpen:
		return s.open(f)
	case kindSign:
		return s.sign(f)
	}
	s.mu.Lock()
	q := s.queues[f.Stream]
	s.mu.Unlock()
	switch {
	case q == nil: // it has ended on this side
		return nil
	case f.Kind == kindStop:
		q.stop()
		return nil
	case f.Kind == kindReply:
		select {
		case q.replies <- f.Payload:
			return nil
		default:
		}
	}
	return link.ErrPayload
}

// setChannel creates the drivers of a channel.
func (s *session) setChannel(payload []byte) error {
	if len(payload) < 6 {
		return link.ErrPayload
	}
	c := &channelDrivers{version: binary.BigEndian.Uint32(payload[2:]), settings: payload[6:]}
	if s.create(c); c.err != nil {
		s.agent.options.Logger.Error("cannot deliver for a channel on this node; retrying", "error", c.err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.channels[binary.BigEndian.Uint16(payload)] = c
	return nil
}

// createAgain is the pause before drivers are created again that could not be created.
const createAgain = 2 * time.Second

// create creates the drivers of a channel.
func (s *session) create(c *channelDrivers) {
	c.by, c.err = s.agent.options.Drivers(s.link.Context(), c.settings)
	c.tried = time.Now()
}

// open starts a driver on a stream.
func (s *session) open(f link.Frame) error {
	if len(f.Payload) < 6 {
		return link.ErrPayload
	}
	relay := string(f.Payload[6:])
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over || s.queues[f.Stream] != nil {
		return link.ErrPayload
	}
	var d driver.Driver
	err := fmt.Errorf("the settings of the channel have changed")
	if c := s.channels[binary.BigEndian.Uint16(f.Payload)]; c != nil && c.version == binary.BigEndian.Uint32(f.Payload[2:]) {
		if c.err != nil && time.Since(c.tried) > createAgain { // the file of a password may be there now
			s.create(c)
		}
		d, err = c.by[relay], c.err
		if d == nil && err == nil {
			err = fmt.Errorf("the channel has no relay %q", relay)
		}
	}
	ctx, stop := context.WithCancel(s.link.Context())
	q := &nodeQueue{link: s.link, stream: f.Stream, ctx: ctx, stop: stop, replies: make(chan []byte, 1)}
	s.queues[f.Stream] = q
	s.running.Go(func() {
		defer stop()
		if d != nil {
			err = run(ctx, d, q)
		}
		s.mu.Lock()
		delete(s.queues, f.Stream)
		s.mu.Unlock()
		text := ""
		if err != nil {
			text = err.Error()
		}
		s.link.Send(kindEnd, f.Stream, link.AppendText(nil, text))
	})
	return nil
}

// run runs a driver. It returns a panic as an error, and the leader settles the messages that the driver held.
func run(ctx context.Context, d driver.Driver, q *nodeQueue) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("driver panicked: %v", p)
		}
	}()
	return d.Serve(ctx, q)
}

// ended stops the drivers after the link has ended.
func (s *session) ended() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.over = true
	for _, q := range s.queues {
		q.stop()
	}
}
