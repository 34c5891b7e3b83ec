package bus

import (
	"fmt"

	"github.com/nats-io/nats.go"
)

// PeersOptions say to which NATS server Peers connect.
type PeersOptions struct {
	URL    string  // of an external server
	Member *Member // instead: the server of this process
	// Connected is called after each connection, because messages were lost before it. It must not block.
	Connected func()
}

// Peers exchange small messages between the processes that are connected to the same NATS servers, with core NATS: a message arrives within
// milliseconds, or never. They store nothing and need no quorum.
type Peers struct{ conn *nats.Conn }

// OpenPeers connects to a NATS server. If it cannot be reached, further attempts follow in the background.
func OpenPeers(o PeersOptions) (p *Peers, err error) {
	p = &Peers{}
	connected := func(*nats.Conn) { o.Connected() }
	options := []nats.Option{nats.Name("fanfare peers"), nats.NoEcho(), nats.MaxReconnects(-1), nats.ReconnectBufSize(-1), nats.ConnectHandler(connected), nats.ReconnectHandler(connected)}
	if o.Member != nil {
		p.conn, err = o.Member.host.connect(append(options, nats.UserInfo(memberUser, o.Member.password))...)
	} else {
		p.conn, err = nats.Connect(o.URL, append(options, nats.RetryOnFailedConnect(true), nats.PingInterval(pingEvery), nats.MaxPingsOutstanding(maxPings))...)
	}
	if err != nil {
		return nil, fmt.Errorf("connect to NATS: %w", err)
	}
	return p, nil
}

// Publish sends a message to all others that subscribe to a subject. It fails if there is no connection.
func (p *Peers) Publish(subject string, message []byte) error {
	return p.conn.Publish(subject, message)
}

// Subscribe calls received for each message of the others to a subject, one after the other, until Close.
func (p *Peers) Subscribe(subject string, received func(message []byte)) error {
	_, err := p.conn.Subscribe(subject, func(m *nats.Msg) { received(m.Data) })
	return err
}

// Close ends the connection.
func (p *Peers) Close() { p.conn.Close() }
