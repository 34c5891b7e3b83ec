package imap_test

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// mirror is a mailbox as a client knows it from the untagged responses alone.
type mirror struct {
	*client
	flags []string // by sequence number; "?" if they are not known
	uids  []string
}

var fetched = regexp.MustCompile(`(?s)^\* (\d+) FETCH \((?:UID (\d+) )?.*?FLAGS \(([^)]*)\)`)

// take applies an untagged response. It reports what no server may send.
func (m *mirror) take(line string, mayExpunge bool) {
	number := func(suffix string) int {
		text, is := strings.CutSuffix(strings.TrimPrefix(line, "* "), suffix)
		n, err := strconv.Atoi(text)
		if !is || err != nil {
			return 0
		}
		return n
	}
	if n := number(" EXPUNGE"); n > 0 {
		if !mayExpunge || n > len(m.flags) {
			m.t.Errorf("%q with %d messages", line, len(m.flags))
			return
		}
		m.flags, m.uids = slices.Delete(m.flags, n-1, n), slices.Delete(m.uids, n-1, n)
	} else if n := number(" EXISTS"); n > 0 || line == "* 0 EXISTS" {
		if n < len(m.flags) {
			m.t.Errorf("%q with %d messages", line, len(m.flags))
			return
		}
		for len(m.flags) < n {
			m.flags, m.uids = append(m.flags, "?"), append(m.uids, "?")
		}
	} else if match := fetched.FindStringSubmatch(line); match != nil {
		n, _ := strconv.Atoi(match[1])
		if n > len(m.flags) {
			m.t.Errorf("%q with %d messages", line, len(m.flags))
			return
		}
		m.flags[n-1] = sorted(match[3])
		if uid := match[2]; uid != "" {
			if m.uids[n-1] != "?" && m.uids[n-1] != uid {
				m.t.Errorf("%q: the message had UID %s", line, m.uids[n-1])
			}
			m.uids[n-1] = uid
		}
	}
}

// sorted returns flags without \Recent in a fixed order.
func sorted(flags string) string {
	list := slices.DeleteFunc(strings.Fields(flags), func(f string) bool { return f == `\Recent` })
	slices.Sort(list)
	return strings.Join(list, " ")
}

// do sends a command and applies its responses.
func (m *mirror) do(format string, args ...any) string {
	command := fmt.Sprintf(format, args...)
	untagged, answer := m.command("%s", command)
	name, _, _ := strings.Cut(command, " ")
	for _, line := range untagged {
		m.take(line, name != "FETCH" && name != "STORE" && name != "SEARCH")
	}
	return answer
}

// step sends a random command.
func (m *mirror) step(r *rand.Rand) {
	one := 1 + r.IntN(max(len(m.flags), 1))
	flags := []string{`\Seen`, `\Deleted`, `\Flagged`, "a", "b", `\Seen c`, ""}[r.IntN(7)]
	mode := []string{"+FLAGS", "-FLAGS", "FLAGS"}[r.IntN(3)]
	switch r.IntN(14) {
	case 0, 1, 2:
		m.do("APPEND INBOX (%s) {=Subject: x\\r\\n\\r\\n%d=}", flags, r.Int())
	case 3, 4:
		m.do("STORE %d %s (%s)", one, mode, flags)
	case 5:
		m.do("UID STORE %d:%d %s (%s)", 1+r.IntN(40), 1+r.IntN(40), mode, flags)
	case 6:
		// The client knows what a silent change does only if nobody else changed the message.
		m.do("STORE %d +FLAGS.SILENT (\\Flagged)", one)
		m.do("FETCH 1:* FLAGS")
	case 7:
		m.do("EXPUNGE")
	case 8:
		m.do("UID EXPUNGE %d:%d", 1+r.IntN(40), 1+r.IntN(40))
	case 9:
		m.do("COPY %d INBOX", one)
	case 10:
		m.do("MOVE %d %s", one, []string{"INBOX", "Archive"}[r.IntN(2)])
	case 11:
		m.do("SEARCH UNSEEN")
	case 12:
		m.do("FETCH %d BODY[]", one)
	case 13:
		m.do("NOOP")
	}
}

// check compares the mailbox as the client knows it with what the server says.
func (m *mirror) check() {
	m.t.Helper()
	m.do("NOOP")
	flags := slices.Clone(m.flags)
	uids := slices.Clone(m.uids)
	untagged, _ := m.command("UID FETCH 1:* FLAGS")
	if len(untagged) != len(flags) {
		m.t.Fatalf("the client knows %d messages, the server says %q", len(flags), untagged)
	}
	last := 0
	for i, line := range untagged {
		match := fetched.FindStringSubmatch(line)
		if match == nil || match[1] != strconv.Itoa(i+1) {
			m.t.Fatalf("response %q", line)
		}
		uid, _ := strconv.Atoi(match[2])
		if uid <= last || uids[i] != "?" && uids[i] != match[2] {
			m.t.Errorf("message %d: UID %d after %d, the client knows %s", i+1, uid, last, uids[i])
		}
		last = uid
		if now := sorted(match[3]); flags[i] != "?" && flags[i] != now {
			m.t.Errorf("message %d: the client knows the flags %q, the server says %q", i+1, flags[i], now)
		}
		m.flags[i], m.uids[i] = sorted(match[3]), match[2]
	}
}

// TestUntaggedResponsesKeepClientsUpToDate runs random commands in several sessions of one mailbox, first one after the other, then at the
// same time. Each client must be able to derive the mailbox from the untagged responses.
func TestUntaggedResponsesKeepClientsUpToDate(t *testing.T) {
	for seed := range uint64(6) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, nil)
			clients := make([]*mirror, 3)
			for i := range clients {
				clients[i] = &mirror{client: w.login(1)}
				clients[i].do("SELECT INBOX")
			}
			r := rand.New(rand.NewPCG(seed, 1))
			for range 300 {
				m := clients[r.IntN(len(clients))]
				m.step(r)
				if r.IntN(10) == 0 {
					m.check()
				}
			}
			var running sync.WaitGroup
			for i, m := range clients {
				running.Go(func() {
					r := rand.New(rand.NewPCG(seed, uint64(100+i)))
					for range 100 {
						m.step(r)
					}
				})
			}
			running.Wait()
			for _, m := range clients {
				m.check()
			}
			first := clients[0]
			for _, m := range clients[1:] {
				if !slices.Equal(m.flags, first.flags) || !slices.Equal(m.uids, first.uids) {
					t.Errorf("two clients know different mailboxes:\n%q\n%q", first.flags, m.flags)
				}
			}
		})
	}
}

// TestQresyncKeepsDisconnectedClientsUpToDate changes a mailbox while a client is away. With the state from before, the client must get to
// know the same mailbox as one that reads everything.
func TestQresyncKeepsDisconnectedClientsUpToDate(t *testing.T) {
	w := newWorld(t, nil)
	other := &mirror{client: w.login(1)}
	other.do("SELECT INBOX")
	r := rand.New(rand.NewPCG(7, 7))
	known := map[string]string{} // flags by UID
	validity, modSeq := "", "1"
	for round := range 30 {
		for range r.IntN(30) {
			other.step(r)
		}
		c := w.login(1)
		c.ok("ENABLE QRESYNC")
		command := "SELECT INBOX"
		if round > 0 {
			command = fmt.Sprintf("SELECT INBOX (QRESYNC (%s %s))", validity, modSeq)
		}
		untagged, _ := c.ok("%s", command)
		for _, line := range untagged {
			if uids, is := strings.CutPrefix(line, "* VANISHED (EARLIER) "); is {
				for _, span := range strings.Split(uids, ",") {
					from, to, isRange := strings.Cut(span, ":")
					if !isRange {
						to = from
					}
					first, _ := strconv.Atoi(from)
					last, _ := strconv.Atoi(to)
					for uid := first; uid <= last; uid++ {
						delete(known, strconv.Itoa(uid))
					}
				}
			}
			if match := fetched.FindStringSubmatch(line); match != nil {
				known[match[2]] = sorted(match[3])
			}
			if text, is := strings.CutPrefix(line, "* OK [UIDVALIDITY "); is {
				validity, _, _ = strings.Cut(text, "]")
			}
			if text, is := strings.CutPrefix(line, "* OK [HIGHESTMODSEQ "); is {
				modSeq, _, _ = strings.Cut(text, "]")
			}
		}
		untagged, _ = c.ok("UID FETCH 1:* FLAGS")
		now := map[string]string{}
		for _, line := range untagged {
			match := fetched.FindStringSubmatch(line)
			now[match[2]] = sorted(match[3])
		}
		if round == 0 {
			known = now
		}
		if fmt.Sprint(known) != fmt.Sprint(now) {
			t.Fatalf("round %d: the client knows\n%v, the server says\n%v", round, known, now)
		}
		c.ok("LOGOUT")
	}
}
