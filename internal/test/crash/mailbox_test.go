//go:build crashsteps

package crash

import (
	"strings"
	"sync"
	"testing"
)

// mailboxKills are the durable steps of mailboxes, with the passing at which the server dies.
var mailboxKills = []struct {
	name    string
	passing int
}{
	{"before-mailbox-numbers", 1},
	{"before-mailbox-commit", 60}, {"after-mailbox-commit", 60},
	{"before-return-reply", 20},
	{"before-mailbox-block", 1}, {"after-mailbox-block", 1},
	{"before-mailbox-merge", 30}, {"after-mailbox-merge", 30},
	{"before-broadcast-edit", 1}, {"after-broadcast-edit", 2},
	{"before-messages-end", 1}, {"after-messages-end", 1},
	{"before-mailbox-blocks-removed", 1}, {"after-mailbox-blocks-removed", 1},
	{"before-search-index", 2}, {"after-search-index", 2},
	{"before-contents-removed", 1}, {"after-contents-removed", 1},
}

// mailboxSteps returns the names of the steps.
func mailboxSteps() (names []string) {
	for _, k := range mailboxKills {
		names = append(names, k.name)
	}
	return names
}

// TestMailboxesKeepWhatWasAcknowledgedWhenTheServerDies kills the server at each durable step of mailboxes and at random moments, while mail arrives over
// LMTP, mailboxes are changed over IMAP and JMAP, and broadcasts are stored, recalled and removed. Contents that nobody uses are removed at each start.
func TestMailboxesKeepWhatWasAcknowledgedWhenTheServerDies(t *testing.T) {
	t.Parallel()
	m := newMailWorld(t, "FANFARE_FAULT=no-mailbox-grace")
	kills := 1
	m.during(func() {
		m.server.kill(m.server.current())
		for _, step := range mailboxKills {
			if strings.HasSuffix(step.name, "-contents-removed") { // which the server does when it starts
				m.server.start()
				before := m.counted("EXPUNGE")
				m.until("messages are expunged", func() bool { return m.counted("EXPUNGE") >= before+2 })
				m.server.kill(m.server.current())
				kills++
			}
			m.dieAt(step.name, step.passing)
			kills++
		}
		m.server.start()
		random := m.random(1)
		for range setting(t, "CRASH_MAILBOX_KILLS", 4) {
			m.killSoon(random, func() {})
			m.server.start()
			kills++
		}
		m.server.awaitReady(m.server.current())
	})
	m.report(kills)
}

// The server has a fault for tests: it replies to LMTP before the transaction. A kill between both must be found, or the test above shows nothing.
func TestMailThatIsAcknowledgedTooEarlyIsFound(t *testing.T) {
	t.Parallel()
	m := newMailWorld(t)
	m.server.kill(m.server.current())
	l := m.server.start("FANFARE_FAULT=acknowledge-before-mailbox-commit", "FANFARE_CRASH_AT=before-mailbox-commit:30")
	var sending sync.WaitGroup
	sending.Go(func() {
		m.server.awaitReady(l)
		sender := &lmtpSender{m: m, name: "lmtp", random: m.random(10)}
		_ = sender.session(l.alive, l) // it ends when the server dies
	})
	m.server.awaitDeath(m.given, l, "died")
	sending.Wait()
	after := m.server.start()
	m.server.awaitReady(after)
	for _, name := range mailPeople {
		if err := newInboxReader(m, name).check(m.given, after); err != nil {
			m.t.Fatal(err)
		}
	}
	if m.done["LMTP"] == 0 || !strings.Contains(strings.Join(m.findings, "\n"), "was acknowledged and is lost") {
		m.t.Errorf("%d messages were acknowledged, and the checks found %q", m.done["LMTP"], m.findings)
	}
}
