package bus

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"fanfare.dev/fanfare"
)

const (
	// clusterName is the name of every cluster of embedded servers. Their secret tells clusters apart.
	clusterName = "fanfare"
	// memberUser is the name of the client of a member in its own process, and of the members among each other.
	memberUser = "fanfare"
	// lastClients is how long a member that stops waits for its clients, which have closed already.
	lastClients = 10 * time.Millisecond
	// watchEvery is how often a member counts the others.
	watchEvery = time.Second
)

// MemberOptions describe a member of a cluster of embedded servers.
type MemberOptions struct {
	Name   string      // unique in the cluster
	Dir    string      // of its files
	Listen string      // host:port for the connections of the other members
	Routes []string    // host:port of all members
	Secret string      // that all members have
	TLS    *tls.Config // of the connections between members; nil: not encrypted
	Sync   bool        // sync each write to the disk before it counts
	Logger *slog.Logger
}

// A Member is the NATS server in this process, as a member of a cluster of such servers. It stores copies of the streams, and votes,
// from its start to its stop, also while no Bus uses it.
type Member struct {
	options  MemberOptions
	host     *host
	password string // of the client in this process
	cancel   context.CancelFunc
	loops    sync.WaitGroup
}

// StartMember starts a member. It does not wait for the others.
func StartMember(o MemberOptions) (*Member, error) {
	if err := refuseAlone(o.Dir); err != nil {
		return nil, err
	}
	m := &Member{options: o, password: rand.Text()}
	options, err := m.serverOptions()
	if err != nil {
		return nil, err
	}
	if m.host, err = startHost(options, o.Logger); err != nil {
		return nil, err
	}
	var ctx context.Context
	ctx, m.cancel = context.WithCancel(context.Background())
	m.loops.Go(func() { m.host.revive(ctx) })
	m.loops.Go(func() { m.watch(ctx) })
	return m, nil
}

// serverOptions returns the options of the server. Routes need a listener for clients: it is on the loopback interface, and only the
// client in this process knows the password.
func (m *Member) serverOptions() (*server.Options, error) {
	o := serverOptions(m.options.Dir, m.options.Sync)
	o.ServerName, o.Host, o.Port = m.options.Name, "127.0.0.1", server.RANDOM_PORT
	o.Username, o.Password = memberUser, m.password
	o.LameDuckGracePeriod, o.LameDuckDuration = lastClients, time.Second
	host, text, err := net.SplitHostPort(m.options.Listen)
	if err != nil {
		return nil, err
	}
	port, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		return nil, err
	}
	o.Cluster = server.ClusterOpts{
		Name: clusterName, Host: host, Port: int(port), Username: memberUser, Password: m.options.Secret, NoAdvertise: true,
		TLSConfig: m.options.TLS, TLSTimeout: routeTLSTimeout.Seconds(), AuthTimeout: routeTLSTimeout.Seconds(),
	}
	for _, route := range m.options.Routes {
		o.Routes = append(o.Routes, &url.URL{Scheme: "nats", Host: route, User: url.UserPassword(memberUser, m.options.Secret)})
	}
	return o, nil
}

// routeTLSTimeout is the time limit of the handshakes of a route.
const routeTLSTimeout = 5 * time.Second

// Stop gives what this server leads to the other members, and stops it. No Bus may use it any more.
func (m *Member) Stop() error {
	m.cancel()
	m.loops.Wait()
	if s := m.host.current(); s != nil {
		s.LameDuckShutdown()
		s.Shutdown() // if the lame duck mode found nothing to do
		s.WaitForShutdown()
	}
	return nil
}

// Ready returns an error while the members that this one reaches have no quorum. A full disk is not an error here: appends report it.
func (m *Member) Ready() error {
	if m.host.broken.Load() != nil {
		return nil //nolint:nilerr // there is no error here
	}
	info, err := m.host.current().Jsz(&server.JSzOptions{})
	if err == nil && info.Meta != nil && info.Meta.Leader != "" {
		return nil
	}
	return &fanfare.Error{
		Code: fanfare.Unavailable, Message: fmt.Sprintf("the embedded NATS servers have no quorum: this server can reach %d of %d", m.reached(), len(m.options.Routes)),
		Hint: "start the other nodes, and check that cluster_routes is identical on all nodes and that the nodes can reach each other at these addresses", RetryAfter: 2 * time.Second,
	}
}

// reached returns how many members this one reaches, including itself.
func (m *Member) reached() int {
	routes, err := m.host.current().Routez(nil)
	if err != nil { // only invalid options have an error
		return 1
	}
	others := map[string]bool{} // a member has several connections
	for _, r := range routes.Routes {
		others[r.RemoteID] = true
	}
	return 1 + len(others)
}

// watch logs when the number of members that this one reaches changes.
func (m *Member) watch(ctx context.Context) {
	ticker := time.NewTicker(watchEvery)
	defer ticker.Stop()
	for before := 0; ; {
		if now := m.reached(); now != before {
			level, of := slog.LevelInfo, len(m.options.Routes)
			if now < before {
				level = slog.LevelWarn
			}
			text := fmt.Sprintf("the embedded NATS server reaches %d of %d", now, of)
			if now > of {
				level, text = slog.LevelWarn, fmt.Sprintf("there are %d embedded NATS servers, but cluster_routes lists %d: set it to the addresses of all nodes, with the same value on each node", now, of)
			}
			m.options.Logger.Log(ctx, level, text, "node", m.options.Name)
			before = now
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

// Await waits until there is a quorum. After patience, it returns the error of Ready.
func (m *Member) Await(ctx context.Context, patience time.Duration) error {
	deadline := time.Now().Add(patience)
	for {
		err := m.Ready()
		if err == nil || time.Now().After(deadline) {
			return err
		}
		select {
		case <-time.After(electionPoll):
		case <-ctx.Done():
			return errors.Join(ctx.Err(), err)
		}
	}
}
