package bus

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"math/big"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/test/pgtest"
)

// memberPatience bounds each wait for members. Elections take long on a busy machine.
const memberPatience = 4 * time.Minute

// eventually waits until condition holds.
func eventually(t testing.TB, what string, condition func() bool) {
	t.Helper()
	for limit := time.Now().Add(memberPatience); !condition(); <-time.After(100 * time.Millisecond) {
		if time.Now().After(limit) {
			t.Fatalf("not within %v: %s", memberPatience, what)
		}
	}
}

// members are embedded servers of one cluster in this process.
type members struct {
	t       testing.TB
	options []MemberOptions
	all     []*Member
}

// startMembers starts three members.
func startMembers(t testing.TB, encrypted *tls.Config) *members {
	t.Helper()
	c := &members{t: t, all: make([]*Member, 3)}
	var routes []string
	for range c.all {
		routes = append(routes, pgtest.Address(t))
	}
	dir := t.TempDir()
	for i := range c.all {
		name := fmt.Sprintf("node-%d", i+1)
		c.options = append(c.options, MemberOptions{Name: name, Dir: filepath.Join(dir, name), Listen: routes[i], Routes: routes, Secret: "secret of a test", TLS: encrypted, Logger: slog.New(slog.DiscardHandler)})
		c.start(i)
	}
	t.Cleanup(func() {
		for i := range c.all {
			c.kill(i)
		}
	})
	return c
}

func (c *members) start(i int) {
	c.t.Helper()
	var err error
	if c.all[i], err = StartMember(c.options[i]); err != nil {
		c.t.Fatal(err)
	}
}

// kill stops a member without giving the others what it leads.
func (c *members) kill(i int) {
	if m := c.all[i]; m != nil {
		m.cancel()
		m.loops.Wait()
		m.host.stop()
	}
	c.all[i] = nil
}

// ready waits until a member has a quorum.
func (c *members) ready(i int) {
	c.t.Helper()
	if err := c.all[i].Await(c.t.Context(), memberPatience); err != nil {
		c.t.Fatal(err)
	}
}

// open opens a bus on a member that has a quorum.
func (c *members) open(i int, options Options) *Bus {
	c.t.Helper()
	c.ready(i)
	options.Member, options.Replicas = c.all[i], 3
	return open(c.t, options)
}

// leads returns the member that leads a stream. It waits for an election.
func (c *members) leads(b *Bus, stream string) (leader int) {
	c.t.Helper()
	eventually(c.t, "a leader of "+stream, func() bool {
		s, err := b.js.Stream(c.t.Context(), stream)
		if err != nil {
			return false
		}
		leader = slices.IndexFunc(c.options, func(o MemberOptions) bool { return o.Name == s.CachedInfo().Cluster.Leader })
		return leader >= 0
	})
	return leader
}

// moveLeader lets another member than i lead a stream.
func (c *members) moveLeader(b *Bus, stream string, i int) int {
	c.t.Helper()
	for range 20 {
		if at := c.leads(b, stream); at != i {
			return at
		}
		if _, err := b.conn.Request("$JS.API.STREAM.LEADER.STEPDOWN."+stream, nil, time.Minute); err != nil {
			c.t.Fatal(err)
		}
		<-time.After(time.Second)
	}
	c.t.Fatalf("member %d keeps %s", i, stream)
	return -1
}

// groupsOf returns the texts in EVENTS by sequence.
func groupsOf(t testing.TB, b *Bus) map[uint64]string {
	t.Helper()
	all := map[uint64]string{}
	err := b.ReplayEvents(t.Context(), time.Unix(0, 0), func(seq uint64, _ time.Time, group []byte) error {
		all[seq] = string(group)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// The member of the process that appends is killed. The others have every acknowledged message, and the messages that were
// fetched there are delivered elsewhere after their lease, not before.
func TestMembersKeepWhatTheyAcknowledged(t *testing.T) {
	t.Parallel()
	c := startMembers(t, nil)
	b := c.open(0, Options{Lease: 15 * time.Second})
	seqs := appendGroups(t, b, fanfare.Bulk, 20)
	publish(t, b, "one", "two")
	held := takeAll(t, batchQueue(t, b), 2)
	other := c.open(1, Options{Lease: 15 * time.Second})
	nothingWithin(t, batchQueue(t, other), 2*time.Second) // another node may hold them
	eventually(t, "three current copies", func() bool {
		copies, err := b.Copies(t.Context())
		return err == nil && copies == Copies{Replicas: 3, Current: 3}
	})
	until := held[0].Until()
	c.kill(0)

	c.ready(1)
	if got := groupsOf(t, other); len(got) != len(seqs) {
		t.Errorf("%d groups were acknowledged, and %d are there", len(seqs), len(got))
	}
	eventually(t, "two current copies after the kill", func() bool {
		copies, err := other.Copies(t.Context())
		return err == nil && copies.Replicas == 3 && copies.Current <= 2
	})
	takeAll(t, batchQueue(t, other), 2)
	if time.Now().Before(until.Add(-time.Second)) {
		t.Error("a batch was delivered twice within its lease")
	}
}

// takeAll takes n messages from a queue.
func takeAll(t testing.TB, q *Queue, n int) (all []*Lease) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), memberPatience)
	defer cancel()
	for range n {
		l, err := q.Next(ctx)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, l)
	}
	return all
}

// The server that leads the streams is killed while another one appends and publishes. Each message waits for the election,
// and is stored once.
func TestAppendsWaitForAnElection(t *testing.T) {
	t.Parallel()
	c := startMembers(t, nil)
	b := c.open(0, Options{})
	first := appendGroups(t, b, fanfare.Bulk, 1)[0]
	leader := c.moveLeader(b, eventsStream, 0)
	batches := make([]Batch, 200)
	for i := range batches {
		batches[i] = Batch{Channel: 7, Lane: fanfare.Bulk, Data: fmt.Appendf(nil, "batch %d", i)}
	}
	killed, errs := make(chan struct{}), make(chan error, 1)
	go func() {
		<-killed
		errs <- b.PublishBatches(t.Context(), batches)
	}()
	for i := range 100 {
		if i == 50 {
			close(killed)
			c.kill(leader)
		}
		if _, err := b.AppendEvents(t.Context(), fanfare.Bulk, fmt.Appendf(nil, "group %d", i)); err != nil {
			t.Fatal(err)
		}
	}
	if err := <-errs; err != nil {
		t.Fatal(err)
	}
	got := groupsOf(t, b)
	for i := range 100 {
		if text := fmt.Sprintf("group %d", i); got[first+1+uint64(i)] != text {
			t.Fatalf("group %d is %q", i, got[first+1+uint64(i)])
		}
	}
	if backlog, err := b.Backlog(t.Context()); err != nil || len(got) != 101 || backlog.Batches != 200 {
		t.Errorf("%d groups, backlog %+v, %v", len(got), backlog, err)
	}
}

// One of three members has no quorum, and says so. It has one again when a second member is back.
func TestAMemberSaysThatItHasNoQuorum(t *testing.T) {
	t.Parallel()
	c := startMembers(t, nil)
	seq := appendGroups(t, c.open(0, Options{}), fanfare.Bulk, 1)[0]
	if err := c.all[1].Stop(); err != nil { // in order
		t.Fatal(err)
	}
	c.all[1] = nil
	c.kill(2)
	eventually(t, "a member alone", func() bool { // until then there may be no leader, or the stopped ones are still reached
		err := c.all[0].Ready()
		return fanfare.CodeOf(err) == fanfare.Unavailable && strings.Contains(err.Error(), "can reach 1 of 3")
	})
	if err := c.all[0].Await(t.Context(), 0); fanfare.CodeOf(err) != fanfare.Unavailable {
		t.Errorf("await: %v", err)
	}
	c.start(1)
	c.ready(0)
	again := c.open(0, Options{}) // waits until the streams have a leader
	if group, _, err := again.EventGroup(t.Context(), seq); err != nil || group == nil {
		t.Errorf("the group: %q, %v", group, err)
	}
}

// A server with another secret does not join.
func TestMembersRefuseAnotherSecret(t *testing.T) {
	t.Parallel()
	c := startMembers(t, nil)
	c.ready(0)
	stranger := c.options[0]
	stranger.Name, stranger.Dir, stranger.Listen, stranger.Secret = "stranger", t.TempDir(), pgtest.Address(t), "another secret"
	m, err := StartMember(stranger)
	if err != nil {
		t.Fatal(err)
	}
	defer m.host.stop()
	defer m.cancel()
	if err := m.Await(t.Context(), 5*time.Second); fanfare.CodeOf(err) != fanfare.Unavailable {
		t.Errorf("the stranger: %v", err)
	}
	eventually(t, "a member reaches the two others alone", func() bool { return c.all[0].reached() == 3 })
}

// The connections between members are encrypted, and a member checks the certificates of the others.
func TestMembersUseTLS(t *testing.T) {
	t.Parallel()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(parsed)
	pair := tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
	c := startMembers(t, &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}, RootCAs: roots})
	appendGroups(t, c.open(0, Options{}), fanfare.Bulk, 3)

	plain := c.options[0]
	plain.Name, plain.Dir, plain.Listen, plain.TLS = "plain", t.TempDir(), pgtest.Address(t), nil
	m, err := StartMember(plain)
	if err != nil {
		t.Fatal(err)
	}
	defer m.host.stop()
	defer m.cancel()
	if err := m.Await(t.Context(), 3*time.Second); fanfare.CodeOf(err) != fanfare.Unavailable {
		t.Errorf("a member without TLS: %v", err)
	}
}

// natsUser is how the process of a member authenticates to it.
func natsUser(m *Member) nats.Option { return nats.UserInfo(memberUser, m.password) }

// cancelAt returns a context that ends when n messages of a subject have been published.
func cancelAt(t testing.TB, conn *nats.Conn, subject string, n int) (ctx context.Context, cancel func()) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	sub, err := conn.Subscribe(subject, func(*nats.Msg) {
		if n--; n == 0 {
			stop()
		}
	})
	if err == nil {
		err = conn.Flush()
	}
	if err != nil {
		t.Fatal(err)
	}
	return ctx, func() {
		stop()
		if err := sub.Unsubscribe(); err != nil {
			t.Error(err)
		}
	}
}
