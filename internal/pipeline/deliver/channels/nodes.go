package channels

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"net/netip"
	"sync"
	"time"

	"fanfare.dev/fanfare/internal/catalog"
	"fanfare.dev/fanfare/internal/clock"
	"fanfare.dev/fanfare/internal/mail/dkim"
	"fanfare.dev/fanfare/internal/mail/dkimkeys"
	"fanfare.dev/fanfare/internal/pipeline/deliver"
	"fanfare.dev/fanfare/internal/pipeline/deliver/driver"
	"fanfare.dev/fanfare/internal/pipeline/deliver/remote"
)

// ownRelays are the relays of a channel as this server reaches them.
type ownRelays struct {
	relays      []deliver.RelaySettings
	connections int             // on each node
	settings    *remote.Channel // for the other nodes; nil: they cannot deliver for the channel
}

// nodeSettings are the settings in a remote.Channel, as JSON.
type nodeSettings struct {
	Service     string                  `json:"service"`
	Name        string                  `json:"name"`
	SendTimeout time.Duration           `json:"send_timeout"`
	Settings    catalog.ChannelSettings `json:"settings"`
}

// ownRelays returns the relays of settings. Other nodes deliver neither into the folders of this machine nor into mailboxes, which
// the node that leads writes in groups, nor to workers, whose broker is the node that leads, nor captured messages.
func (c *Channels) ownRelays(conf *catalog.Channel, s *deliver.Settings, fault error) ownRelays {
	own := ownRelays{relays: s.Relays, connections: s.Connections}
	if c.options.Nodes == nil || fault != nil || conf.Driver == "file" || conf.Driver == "worker" || conf.Driver == "inbox" || c.options.Capture.InForce() {
		return own
	}
	text, err := json.Marshal(nodeSettings{conf.Service, conf.Name, s.SendTimeout, conf.ChannelSettings})
	if err != nil { // the settings were read from JSON
		c.logger.Error("no other node can deliver for a channel", "channel", conf.Service+"/"+conf.Name, "error", err)
		return own
	}
	own.settings = remote.NewChannel(conf.Number, text)
	return own
}

// errNoNode is the error of a channel for which no node delivers.
var errNoNode = errors.New("no node with the role deliver is connected to the leader; start one, or see its log")

// spread returns the relays of a channel, with an entry for each relay and delivering node, and the total number of
// connections.
func (c *Channels) spread(conf *catalog.Channel, own *ownRelays) (all []deliver.RelaySettings, connections int) {
	nodes := 0
	add := func(node string, driverOf func(*deliver.RelaySettings) driver.Driver) {
		nodes++
		for _, r := range own.relays {
			r.Node, r.Driver, r.Drained = node, driverOf(&r), c.parts.Registry.RelayDrained(conf, r.Name)
			all = append(all, r)
		}
	}
	if own.settings == nil || !c.options.Remote {
		add("", func(r *deliver.RelaySettings) driver.Driver { return r.Driver })
	}
	if own.settings != nil {
		for _, n := range c.options.Nodes.Nodes() {
			add(n.Name(), func(r *deliver.RelaySettings) driver.Driver { return n.Driver(own.settings, r.Name) })
		}
	}
	if nodes == 0 {
		add("", func(*deliver.RelaySettings) driver.Driver { return brokenDriver{errNoNode} })
	}
	return all, nodes * own.connections
}

// NodesChanged spreads the connections of all channels over the current delivering nodes.
func (c *Channels) NodesChanged() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, conf := range append(c.parts.Registry.Channels(), c.parts.Registry.DeletedChannels()...) {
		if ch := c.open[conf.Number]; ch != nil && ch.own.settings != nil {
			ch.SetRelays(c.spread(conf, &ch.own))
		}
	}
}

// NodeConnections returns the number of open connections of each node; "" is this server.
func (c *Channels) NodeConnections() map[string]int {
	all := map[string]int{}
	for _, ch := range c.all() {
		status := ch.Status()
		for i := range status.Relays {
			all[status.Relays[i].Node] += status.Relays[i].Connections
		}
	}
	return all
}

// A Node creates drivers on a node that delivers for the leader, and signs for it with the DKIM keys of the channels.
type Node struct {
	WebhookKey []byte // signs for channels without a secret
	Networks   []netip.Prefix
	Clock      clock.Clock

	mu       sync.Mutex
	channels map[string]*catalog.Channel // by service and name
	keys     map[string]*dkim.Key        // by public key
	read     time.Time                   // when the keys were read
}

// Drivers creates the drivers of a channel by relay, from the settings that the leader passed to remote.NewChannel.
func (n *Node) Drivers(abort context.Context, settings []byte) (map[string]driver.Driver, error) {
	var in nodeSettings
	if err := json.Unmarshal(settings, &in); err != nil {
		return nil, err
	}
	conf := &catalog.Channel{Service: in.Service, Name: in.Name, ChannelSettings: in.Settings}
	n.learn(conf)
	relays, err := (builder{n.WebhookKey, n.Networks, abort}).relays(conf, &deliver.Settings{
		Connections: conf.Connections, SendTimeout: in.SendTimeout, IdleTimeout: idleTimeout,
	})
	if err != nil {
		return nil, err
	}
	all := make(map[string]driver.Driver, len(relays))
	for _, r := range relays {
		all[r.Name] = r.Driver
	}
	return all, nil
}

// readKeysAgain is the pause before the keys are read again because one is missing.
const readKeysAgain = 5 * time.Second

// learn notes the settings of a channel, whose keys are read when a signature is needed.
func (n *Node) learn(conf *catalog.Channel) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.channels == nil {
		n.channels = map[string]*catalog.Channel{}
	}
	n.channels[conf.Service+"/"+conf.Name] = conf
	n.read = time.Time{}
}

// Sign signs a digest with the key that has a public key. It returns nil if this node does not have the key.
func (n *Node) Sign(public []byte, digest *[sha256.Size]byte) []byte {
	key := n.key(public)
	if key == nil {
		return nil
	}
	signature, err := key.SignDigest(digest)
	if err != nil {
		return nil // the leader signs, and reports the error
	}
	return signature
}

func (n *Node) key(public []byte) *dkim.Key {
	n.mu.Lock()
	defer n.mu.Unlock()
	if key := n.keys[string(public)]; key != nil || n.Clock.Now().Sub(n.read) < readKeysAgain {
		return key
	}
	n.keys, n.read = map[string]*dkim.Key{}, n.Clock.Now()
	for _, conf := range n.channels {
		for _, r := range dkimkeys.ReadAll(conf) {
			if r.Err == nil {
				n.keys[string(r.Key.Public())] = r.Key
			}
		}
	}
	return n.keys[string(public)]
}
