//go:build crashsteps

package crash

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"fanfare.dev/fanfare/client"
	"fanfare.dev/fanfare/internal/test/pgtest"
)

const inboxDocument = `
service: news
channels:
  inbox: {driver: inbox, from: "News <news@example.org>", rate: unlimited}
topics:
  story: {template: story}
templates:
  story: {subject: "{{ event.title }}", text: "Hello {{ subscriber.address }}, this is {{ event.title }}.\n"}
`

// inboxes is the number of people with an inbox: enough that a broadcast is stored as a block.
const inboxes = 80

// mailPeople are those whose mailboxes are opened over IMAP. Ann's folders Work and Done are changed over IMAP, and bob's over JMAP.
var mailPeople = []string{"ann", "bob", "carl", "dora"}

// mailWorld is a server with mailboxes, and everybody who uses them. Each user checks what was promised whenever the server is there again.
type mailWorld struct {
	*world
	passwords map[string]string

	mu           sync.Mutex
	acknowledged map[string]map[string]bool // subjects of LMTP by person
	kept, gone   []string                   // titles of broadcasts that are stored, or removed from all inboxes
	findings     []string
	done         map[string]int // operations that were acknowledged
}

// newMailWorld starts a server. The environment is that of all its lives.
func newMailWorld(of *testing.T, env ...string) *mailWorld {
	of.Helper()
	t := tell(of)
	env = append(env, "FANFARE_LMTP_LISTEN=127.0.0.1:0", "FANFARE_IMAP_LISTEN=127.0.0.1:0")
	m := &mailWorld{world: &world{t: t, seed: seedOf(t), server: newServer(t, "fsync", pgtest.Chosen(t), env...)},
		passwords: map[string]string{}, acknowledged: map[string]map[string]bool{}, done: map[string]int{}}
	m.limit()
	l := m.server.start()
	m.server.awaitReady(l)
	if _, err := l.client.Apply(t.Context(), []byte(inboxDocument), false); err != nil {
		t.Fatal(err)
	}
	sum, err := l.client.PutSubscriptions(t.Context(), func(yield func(client.Subscription, error) bool) {
		for i := range inboxes {
			if !yield(client.Subscription{Topic: story, Channel: "inbox", To: inboxName(i) + "@example.org"}, nil) {
				return
			}
		}
	}, nil)
	if err != nil || sum.Failed > 0 {
		t.Fatalf("%+v, %v", sum, err)
	}
	for _, name := range mailPeople {
		made, err := l.client.CreateAppPassword(t.Context(), name+"@example.org", "test")
		if err != nil {
			t.Fatal(err)
		}
		m.passwords[name] = made.Password
		m.acknowledged[name] = map[string]bool{}
	}
	return m
}

func inboxName(i int) string {
	if i < len(mailPeople) {
		return mailPeople[i]
	}
	return fmt.Sprintf("person%d", i)
}

// broken records that a promise was not kept.
func (m *mailWorld) broken(format string, args ...any) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.findings = append(m.findings, fmt.Sprintf(format, args...))
}

func (m *mailWorld) count(what string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.done[what]++
}

func (m *mailWorld) counted(what string) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.done[what]
}

var (
	// errRefused is in the chain of the error for a request that the server did not carry out and that it must.
	errRefused = errors.New("the server refused")
	// errNotNow is the same for a request that can be repeated, because the database is too slow. It may have been carried out.
	errNotNow = errors.New("the server is not available")
)

// refusal returns the error for a negative response.
func refusal(text string, temporary bool) error {
	if temporary {
		return fmt.Errorf("%w: %s", errNotNow, text)
	}
	return fmt.Errorf("%w: %s", errRefused, text)
}

// each runs a session with each life of the server, until stop ends. A session ends when the server dies.
func (m *mailWorld) each(stop context.Context, who string, session func(context.Context, *life) error) {
	for {
		l := m.server.next(stop)
		if l == nil {
			return
		}
		both, cancel := context.WithCancel(stop)
		release := context.AfterFunc(l.alive, cancel)
		err := session(both, l)
		release()
		cancel()
		if errors.Is(err, errRefused) {
			m.broken("%s: %v", who, err)
		}
		select {
		case <-l.alive.Done():
		case <-stop.Done():
			return
		case <-time.After(50 * time.Millisecond): // a connection that breaks is the first sign of a death
		}
	}
}

// during runs a scenario while mail arrives and mailboxes are changed and read.
func (m *mailWorld) during(scenario func()) {
	m.t.Helper()
	stop, cancel := context.WithCancel(m.given)
	defer cancel()
	var running sync.WaitGroup
	imap, jmap := newIMAPUser(m), newJMAPUser(m)
	readers := make([]*inboxReader, len(mailPeople))
	for i, name := range mailPeople {
		readers[i] = newInboxReader(m, name)
		running.Go(func() { m.each(stop, "reading the inbox of "+name, readers[i].session) })
	}
	for i := range 2 {
		sender := &lmtpSender{m: m, name: fmt.Sprint("lmtp", i), random: m.random(10 + i)}
		running.Go(func() { m.each(stop, sender.name, sender.session) })
	}
	running.Go(func() { m.each(stop, "IMAP", imap.session) })
	running.Go(func() { m.each(stop, "JMAP", jmap.session) })
	running.Go(func() { m.broadcasts(stop) })
	scenario()
	cancel()
	running.Wait()
	if err := context.Cause(m.given); err != nil {
		m.t.Fatal(err)
	}

	// The last look: everything must be there, and what was removed must be gone.
	last := m.server.current()
	m.server.awaitReady(last)
	succeeds := func(check func(context.Context, *life) error) bool {
		err := check(m.given, last)
		if errors.Is(err, errRefused) {
			m.t.Fatal(err)
		}
		return err == nil
	}
	m.until("the messages of recalled and expired broadcasts are removed", func() bool {
		for _, r := range readers {
			if !succeeds(r.check) || r.has(m.gone) {
				return false
			}
		}
		return true
	})
	m.until("the other mailboxes can be read", func() bool { return succeeds(imap.check) && succeeds(jmap.check) })
}

// report fails the test for each promise that was broken, and if nothing was tried.
func (m *mailWorld) report(kills int) {
	m.t.Helper()
	m.t.Logf("%d kills, slowest start %v; acknowledged: %v; %d broadcasts kept, %d removed", kills, m.server.slowest.Round(time.Millisecond), m.done, len(m.kept), len(m.gone))
	if len(m.findings) > 0 {
		m.t.Errorf("%d promises were broken, such as %q", len(m.findings), m.findings[:min(shown, len(m.findings))])
	}
	for _, what := range []string{"LMTP", "APPEND", "STORE", "COPY", "MOVE", "EXPUNGE", "import", "keywords", "mailbox", "destroy", "inbox read"} {
		if m.done[what] == 0 {
			m.t.Errorf("nothing was tried with %s", what)
		}
	}
	if len(m.kept) == 0 || len(m.gone) == 0 {
		m.t.Errorf("%d broadcasts were kept and %d removed, which shows nothing", len(m.kept), len(m.gone))
	}
}

// broadcasts publishes stories, one after the other. Some stay, some are recalled while most people have not opened their mailbox, and some expire
// after all have.
func (m *mailWorld) broadcasts(stop context.Context) {
	for n := 0; stop.Err() == nil; n++ {
		title := fmt.Sprintf("story-%d", n)
		if err := m.broadcast(stop, title, n%3); err != nil && stop.Err() == nil {
			m.fail(fmt.Errorf("%s: %w", title, err))
			return
		}
	}
}

func (m *mailWorld) broadcast(stop context.Context, title string, kind int) error {
	var id string
	err := m.server.do(stop, func(ctx context.Context, api *client.Client) error {
		accepted, err := api.Publish(ctx, story, map[string]any{"title": title}, client.PublishOptions{ID: title})
		id = accepted.ID
		return err
	})
	for completed := false; err == nil && !completed; {
		err = m.server.do(stop, func(ctx context.Context, api *client.Client) error {
			b, err := api.Event(ctx, id)
			completed = err == nil && !b.Stages.Completed.IsZero()
			return err
		})
		if !completed {
			select {
			case <-stop.Done():
				return nil
			case <-time.After(20 * time.Millisecond):
			}
		}
	}
	if err != nil {
		return err
	}
	if kind != 1 { // all open their mailboxes
		errs := make([]error, inboxes)
		var reading sync.WaitGroup
		for at := range readersAtOnce {
			reading.Go(func() {
				for i := at; i < inboxes; i += readersAtOnce {
					errs[i] = m.server.do(stop, func(ctx context.Context, api *client.Client) error { return readAll(ctx, api, inboxName(i)) })
				}
			})
		}
		reading.Wait()
		if err := errors.Join(errs...); err != nil {
			return err
		}
	}
	to := &m.kept
	if kind != 0 {
		to = &m.gone
		err = m.server.do(stop, func(ctx context.Context, api *client.Client) error {
			if kind == 1 {
				return api.Recall(ctx, id)
			}
			return api.Expire(ctx, id, time.Now().Add(-time.Minute))
		})
	}
	if err == nil {
		m.mu.Lock()
		*to = append(*to, title)
		m.mu.Unlock()
	}
	return err
}

// readersAtOnce is the number of mailboxes that are opened at the same time.
const readersAtOnce = 8

func readAll(ctx context.Context, api *client.Client, name string) error {
	body, err := api.ExportMailbox(ctx, name+"@example.org")
	if err != nil {
		return err
	}
	defer body.Close()
	_, err = io.Copy(io.Discard, body)
	return err
}

// enoughMail is the number of messages after which fewer are sent: the inboxes are read again and again.
const enoughMail = 1000

// lmtpSender sends each message once, to two people.
type lmtpSender struct {
	m      *mailWorld
	name   string
	random *rand.Rand
	sent   int
}

func (s *lmtpSender) session(ctx context.Context, l *life) error {
	c, err := dialLine(ctx, l.lmtp)
	if err != nil {
		return err
	}
	defer c.close()
	if _, err := c.reply(); err != nil {
		return err
	}
	if _, err := c.ask("LHLO sender.example.com"); err != nil {
		return err
	}
	for ; ; s.sent++ {
		pace := 30 * time.Millisecond
		if s.m.counted("LMTP") > enoughMail {
			pace *= 10
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pace):
		}
		subject := fmt.Sprintf("%s-%d", s.name, s.sent)
		first := s.random.IntN(len(mailPeople))
		to := []string{mailPeople[first], mailPeople[(first+1)%len(mailPeople)]}
		for _, command := range []string{"MAIL FROM:<>", "RCPT TO:<" + to[0] + "@example.org>", "RCPT TO:<" + to[1] + "@example.org>", "DATA"} {
			if _, err := c.ask(command); err != nil {
				return err
			}
		}
		if err := c.write(fmt.Sprintf("Subject: %s\r\n\r\n%s\r\n.\r\n", subject, strings.Repeat("body ", s.random.IntN(200)))); err != nil {
			s.sent++ // it may have arrived
			return err
		}
		for _, person := range to {
			if _, err := c.reply(); err != nil {
				s.sent++
				return err
			}
			s.m.mu.Lock()
			s.m.acknowledged[person][subject] = true
			s.m.done["LMTP"]++
			s.m.mu.Unlock()
		}
	}
}

// subjectsFor returns what was acknowledged for a person until now, and the titles of broadcasts that must be in the inbox.
func (m *mailWorld) subjectsFor(person string) (subjects []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for subject := range m.acknowledged[person] {
		subjects = append(subjects, subject)
	}
	return slices.Concat(subjects, m.kept)
}
