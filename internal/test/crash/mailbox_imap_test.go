//go:build crashsteps

package crash

import (
	"bufio"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// lineConn is a connection of LMTP or IMAP. Errors that are not errRefused mean that it broke.
type lineConn struct {
	conn net.Conn
	in   *bufio.Reader
	stop func() bool
	tag  int
}

func dialLine(ctx context.Context, at string) (*lineConn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", at)
	if err != nil {
		return nil, err
	}
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		return nil, err
	}
	return &lineConn{conn: conn, in: bufio.NewReader(conn), stop: context.AfterFunc(ctx, func() { conn.Close() })}, nil
}

func (c *lineConn) close() {
	c.stop()
	c.conn.Close()
}

func (c *lineConn) write(text string) error {
	_, err := io.WriteString(c.conn, text)
	return err
}

// reply reads a positive reply of LMTP.
func (c *lineConn) reply() (string, error) {
	for {
		line, err := c.in.ReadString('\n')
		if err != nil {
			return "", err
		}
		if len(line) > 3 && line[3] == ' ' {
			if line[0] > '3' {
				return "", refusal(line, line[0] == '4')
			}
			return line, nil
		}
	}
}

// ask sends a command of LMTP.
func (c *lineConn) ask(command string) (string, error) {
	if err := c.write(command + "\r\n"); err != nil {
		return "", err
	}
	return c.reply()
}

var literalSize = regexp.MustCompile(`\{(\d+)\}\r\n$`)

// A response of IMAP has its text without the literal, and the last literal.
type response struct{ text, literal string }

func (c *lineConn) response() (r response, err error) {
	for {
		line, err := c.in.ReadString('\n')
		if err != nil {
			return r, err
		}
		r.text += line
		size := literalSize.FindStringSubmatch(line)
		if size == nil {
			r.text = strings.TrimSuffix(r.text, "\r\n")
			return r, nil
		}
		n, err := strconv.Atoi(size[1])
		if err != nil {
			return r, err
		}
		literal := make([]byte, n)
		if _, err := io.ReadFull(c.in, literal); err != nil {
			return r, err
		}
		r.literal = string(literal)
	}
}

// do runs a command of IMAP. The last response is the tagged one.
func (c *lineConn) do(format string, args ...any) (all []response, err error) {
	c.tag++
	tag, command := fmt.Sprintf("t%d ", c.tag), fmt.Sprintf(format, args...)
	if err := c.write(tag + command + "\r\n"); err != nil {
		return nil, err
	}
	for {
		r, err := c.response()
		if err != nil {
			return nil, err
		}
		all = append(all, r)
		if status, ok := strings.CutPrefix(r.text, tag); ok {
			if !strings.HasPrefix(status, "OK") {
				return nil, refusal(fmt.Sprintf("%.60q is answered with %s", command, status), strings.Contains(status, "[UNAVAILABLE]"))
			}
			return all, nil
		}
	}
}

// openIMAP logs in.
func (m *mailWorld) openIMAP(ctx context.Context, l *life, name string) (*lineConn, error) {
	c, err := dialLine(ctx, l.imap)
	if err != nil {
		return nil, err
	}
	if _, err = c.response(); err == nil {
		if _, err = c.do("LOGIN %s@example.org %s", name, m.passwords[name]); err == nil {
			_, err = c.do("ENABLE CONDSTORE")
		}
	}
	if err != nil {
		c.close()
		return nil, err
	}
	return c, nil
}

// imapMessage is a message that a client saw or stored.
type imapMessage struct {
	hash    [sha256.Size]byte
	flags   string
	modSeq  uint64
	subject string
}

func newIMAPMessage(text string, flags ...string) imapMessage {
	flags = slices.DeleteFunc(flags, func(flag string) bool { return flag == `\Recent` })
	slices.Sort(flags)
	m := imapMessage{hash: sha256.Sum256([]byte(text)), flags: strings.Join(flags, " ")}
	if found := subjectLine.FindStringSubmatch(text); found != nil {
		m.subject = found[1]
	}
	return m
}

var (
	subjectLine    = regexp.MustCompile(`(?m)^Subject: (\S+)`)
	fetchedUID     = regexp.MustCompile(`\bUID (\d+)`)
	fetchedFlags   = regexp.MustCompile(`\bFLAGS \(([^)]*)\)`)
	fetchedModSeq  = regexp.MustCompile(`\bMODSEQ \((\d+)\)`)
	uidValidity    = regexp.MustCompile(`\[UIDVALIDITY (\d+)\]`)
	uidNext        = regexp.MustCompile(`\[UIDNEXT (\d+)\]`)
	highestModSeq  = regexp.MustCompile(`\[HIGHESTMODSEQ (\d+)\]`)
	appendedUID    = regexp.MustCompile(`\[APPENDUID \d+ (\d+)\]`)
	copiedUIDs     = regexp.MustCompile(`\[COPYUID \d+ (\S+) (\S+)\]`)
	errNotInAnswer = fmt.Errorf("%w to tell a number", errRefused)
)

// imapNumber finds a number in responses.
func imapNumber(all []response, pattern *regexp.Regexp) (uint64, error) {
	for _, r := range all {
		if found := pattern.FindStringSubmatch(r.text); found != nil {
			return strconv.ParseUint(found[1], 10, 64)
		}
	}
	return 0, fmt.Errorf("%w: %s in %.200q", errNotInAnswer, pattern, all)
}

// imapMailbox is what a client knows of a mailbox. It holds each new look against the earlier ones.
type imapMailbox struct {
	name     string
	validity uint64
	next     uint64 // larger than each UID that was ever seen
	highest  uint64
	messages map[uint64]imapMessage
	ever     map[uint64][sha256.Size]byte // of all messages that were ever seen
}

func newIMAPMailbox(name string) *imapMailbox {
	return &imapMailbox{name: name, messages: map[uint64]imapMessage{}, ever: map[uint64][sha256.Size]byte{}}
}

// look reads the mailbox and compares it with what is known, but not which messages it must have. It returns those that it has.
func (b *imapMailbox) look(c *lineConn, broken func(string, ...any)) (map[uint64]imapMessage, error) {
	opened, err := c.do("SELECT %s", b.name)
	if err != nil {
		return nil, err
	}
	validity, err := imapNumber(opened, uidValidity)
	if err != nil {
		return nil, err
	}
	next, err := imapNumber(opened, uidNext)
	if err != nil {
		return nil, err
	}
	highest, err := imapNumber(opened, highestModSeq)
	if err != nil {
		return nil, err
	}
	if b.validity != 0 && validity != b.validity {
		broken("%s: the UIDVALIDITY was %d and is %d", b.name, b.validity, validity)
	}
	if next < b.next {
		broken("%s: UIDNEXT is %d, and the UID %d was used", b.name, next, b.next-1)
	}
	if highest < b.highest {
		broken("%s: HIGHESTMODSEQ was %d and is %d", b.name, b.highest, highest)
	}
	const fetch = "UID FETCH 1:* (FLAGS MODSEQ BODY.PEEK[])"
	list, err := c.do(fetch)
	for err != nil && strings.Contains(err.Error(), "[EXPUNGEISSUED]") { // messages of a broadcast were removed meanwhile
		if _, err = c.do("NOOP"); err == nil {
			list, err = c.do(fetch)
		}
	}
	if err != nil {
		return nil, err
	}
	messages := map[uint64]imapMessage{}
	for _, r := range list {
		if r.literal == "" || !strings.Contains(r.text, " FETCH (") {
			continue
		}
		uid, err := imapNumber([]response{r}, fetchedUID)
		if err != nil {
			return nil, err
		}
		flags := fetchedFlags.FindStringSubmatch(r.text)
		if flags == nil {
			return nil, fmt.Errorf("%w: no flags in %s", errRefused, r.text)
		}
		m := newIMAPMessage(r.literal, strings.Fields(flags[1])...)
		if m.modSeq, err = imapNumber([]response{r}, fetchedModSeq); err != nil {
			return nil, err
		}
		messages[uid] = m
		switch hash, known := b.ever[uid]; {
		case known && hash != m.hash:
			broken("%s: UID %d is another message now, %q", b.name, uid, m.subject)
		case !known && uid < b.next:
			broken("%s: UID %d appeared although UIDNEXT was %d", b.name, uid, b.next)
		}
		if m.modSeq < b.messages[uid].modSeq {
			broken("%s: the MODSEQ of UID %d was %d and is %d", b.name, uid, b.messages[uid].modSeq, m.modSeq)
		}
		if m.modSeq > highest {
			highest = m.modSeq // it changed after SELECT
		}
		next = max(next, uid+1)
	}
	for uid, m := range messages {
		b.ever[uid] = m.hash
	}
	b.validity, b.next, b.highest = validity, next, highest
	return messages, nil
}

// enter records a message whose UID the server told.
func (b *imapMailbox) enter(uid uint64, m imapMessage, broken func(string, ...any)) {
	if uid < b.next {
		broken("%s: UID %d was given to a new message although UIDNEXT was %d", b.name, uid, b.next)
	}
	b.next = max(b.next, uid+1)
	b.messages[uid], b.ever[uid] = m, m.hash
}

// inboxReader reads the inbox of a person again and again.
type inboxReader struct {
	m    *mailWorld
	name string
	box  *imapMailbox
}

func newInboxReader(m *mailWorld, name string) *inboxReader {
	return &inboxReader{m: m, name: name, box: newIMAPMailbox("INBOX")}
}

func (r *inboxReader) session(ctx context.Context, l *life) error {
	for {
		if err := r.check(ctx, l); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(300 * time.Millisecond):
		}
	}
}

func (r *inboxReader) broken(format string, args ...any) { r.m.broken(r.name+": "+format, args...) }

// check looks at the inbox once, over a connection of its own.
func (r *inboxReader) check(ctx context.Context, l *life) error {
	c, err := r.m.openIMAP(ctx, l, r.name)
	if err != nil {
		return err
	}
	defer c.close()
	must := r.m.subjectsFor(r.name)
	messages, err := r.box.look(c, r.broken)
	if err != nil {
		return err
	}
	times := map[string]int{}
	for _, m := range messages {
		if times[m.subject]++; times[m.subject] == 2 {
			r.broken("%q is there twice", m.subject)
		}
	}
	for _, subject := range must {
		if times[subject] == 0 {
			r.broken("%q was acknowledged and is lost", subject)
		}
	}
	for uid, m := range r.box.messages {
		if _, still := messages[uid]; !still && !strings.HasPrefix(m.subject, story) {
			r.broken("UID %d, %q, is gone", uid, m.subject)
		}
	}
	r.box.messages = messages
	r.m.count("inbox read")
	return nil
}

// has reports whether the inbox had a message with one of the subjects at the last look.
func (r *inboxReader) has(subjects []string) bool {
	for _, m := range r.box.messages {
		if slices.Contains(subjects, m.subject) {
			return true
		}
	}
	return false
}

// An imapUser changes ann's mailboxes Work and Done, which nobody else does, and knows what each must hold.
type imapUser struct {
	m       *mailWorld
	random  *rand.Rand
	boxes   map[string]*imapMailbox
	next    map[string]uint64 // of the mailboxes, before a comparison that was interrupted
	pending *imapChange       // whose answer was not read
	sent    int
}

// An imapChange is a command that may or may not have been carried out.
type imapChange struct {
	remove map[string][]uint64               // UIDs by mailbox
	change map[string]map[uint64]imapMessage // by mailbox
	add    map[string][]imapMessage          // with a UID that the client does not know
}

func newIMAPUser(m *mailWorld) *imapUser {
	return &imapUser{m: m, random: m.random(20), boxes: map[string]*imapMailbox{"Work": newIMAPMailbox("Work"), "Done": newIMAPMailbox("Done")}, next: map[string]uint64{}}
}

func (u *imapUser) broken(format string, args ...any) { u.m.broken("ann: "+format, args...) }

func (u *imapUser) session(ctx context.Context, l *life) error {
	c, err := u.m.openIMAP(ctx, l, "ann")
	if err != nil {
		return err
	}
	defer c.close()
	for name, b := range u.boxes {
		if b.validity == 0 {
			if all, err := c.do(`LIST "" %s`, name); err != nil {
				return err
			} else if len(all) > 1 {
				continue // it was created and the answer was lost
			}
			if _, err := c.do("CREATE %s", name); err != nil {
				return err
			}
		}
	}
	if err := u.compare(c); err != nil {
		return err
	}
	for ctx.Err() == nil {
		if err := u.step(c); err != nil {
			return err
		}
	}
	return nil
}

// check compares both mailboxes over a connection of its own.
func (u *imapUser) check(ctx context.Context, l *life) error {
	c, err := u.m.openIMAP(ctx, l, "ann")
	if err != nil {
		return err
	}
	defer c.close()
	return u.compare(c)
}

// compare reads both mailboxes. They must be as they were before the pending change, or as they are after it.
func (u *imapUser) compare(c *lineConn) error {
	have := map[string]map[uint64]imapMessage{}
	for name, b := range u.boxes {
		if _, interrupted := u.next[name]; !interrupted {
			u.next[name] = b.next
		}
		messages, err := b.look(c, u.broken)
		if err != nil {
			return err
		}
		have[name] = messages
	}
	if before := u.differs(have, nil); before != "" {
		if after := u.differs(have, u.pending); u.pending == nil || after != "" {
			u.broken("before the pending change %+v: %s; after it: %s", u.pending, before, after)
		}
	}
	for name, b := range u.boxes {
		b.messages = have[name]
	}
	u.pending = nil
	clear(u.next)
	return nil
}

// differs says how mailboxes differ from what they must be with a change.
func (u *imapUser) differs(have map[string]map[uint64]imapMessage, with *imapChange) string {
	if with == nil {
		with = &imapChange{}
	}
	for name, b := range u.boxes {
		want := maps.Clone(b.messages)
		for _, uid := range with.remove[name] {
			delete(want, uid)
		}
		maps.Copy(want, with.change[name])
		added := slices.Clone(with.add[name])
		for uid, m := range have[name] {
			w, known := want[uid]
			if known {
				if w.hash != m.hash || w.flags != m.flags {
					return fmt.Sprintf("%s: UID %d has %q with flags %q, want %q with %q", name, uid, m.subject, m.flags, w.subject, w.flags)
				}
				delete(want, uid)
				continue
			}
			at := slices.IndexFunc(added, func(a imapMessage) bool { return a.hash == m.hash && a.flags == m.flags })
			if at < 0 || uid < u.next[name] {
				return fmt.Sprintf("%s: UID %d, %q with flags %q, is not expected", name, uid, m.subject, m.flags)
			}
			added = slices.Delete(added, at, at+1)
		}
		if len(want)+len(added) > 0 {
			return fmt.Sprintf("%s: %d messages are missing, and %d new ones", name, len(want), len(added))
		}
	}
	return ""
}

// run sends a command, of which the change is pending until its answer was read.
func (u *imapUser) run(c *lineConn, what string, change *imapChange, format string, args ...any) ([]response, error) {
	u.pending = change
	all, err := c.do(format, args...)
	if err == nil {
		u.pending = nil
		u.m.count(what)
	}
	return all, err
}

// most is how many messages a mailbox has before some are expunged.
const most = 40

// step makes a change.
func (u *imapUser) step(c *lineConn) error {
	work, done := u.boxes["Work"], u.boxes["Done"]
	choice := u.random.IntN(10)
	switch {
	case len(work.messages) == 0 || choice < 3 && len(work.messages) < most:
		u.sent++
		flags := []string{`\Seen`, `\Flagged`, "$Own"}[:u.random.IntN(4)]
		text := fmt.Sprintf("Subject: own-%d\r\nMessage-ID: <own-%[1]d@example.org>\r\n\r\n%s\r\n", u.sent, strings.Repeat("text ", u.random.IntN(100)))
		m := newIMAPMessage(text, slices.Clone(flags)...)
		all, err := u.run(c, "APPEND", &imapChange{add: map[string][]imapMessage{"Work": {m}}}, "APPEND Work (%s) {%d+}\r\n%s", strings.Join(flags, " "), len(text), text)
		if err != nil {
			return err
		}
		uid, err := imapNumber(all, appendedUID)
		if err != nil {
			return err
		}
		work.enter(uid, m, u.broken)
		return nil
	case choice < 5:
		return u.transfer(c, work, done, choice == 4)
	case choice < 6 || len(work.messages) >= most || len(done.messages) >= most:
		box := work
		if len(done.messages) > len(work.messages) {
			box = done
		}
		return u.expunge(c, box)
	default:
		_, err := u.store(c, work, u.some(work, 1+u.random.IntN(3)), []string{`\Seen`, `\Flagged`, `\Answered`, "$Own"}[u.random.IntN(4)], u.random.IntN(3) > 0)
		return err
	}
}

// some chooses messages.
func (u *imapUser) some(b *imapMailbox, n int) []uint64 {
	uids := slices.Sorted(maps.Keys(b.messages))
	u.random.Shuffle(len(uids), func(i, j int) { uids[i], uids[j] = uids[j], uids[i] })
	return slices.Sorted(slices.Values(uids[:min(n, len(uids))]))
}

func uidSet(uids []uint64) string {
	var texts []string
	for _, uid := range uids {
		texts = append(texts, strconv.FormatUint(uid, 10))
	}
	return strings.Join(texts, ",")
}

// store sets or clears a flag.
func (u *imapUser) store(c *lineConn, b *imapMailbox, uids []uint64, flag string, set bool) (bool, error) {
	if _, err := c.do("SELECT %s", b.name); err != nil {
		return false, err
	}
	changed := map[uint64]imapMessage{}
	for _, uid := range uids {
		m := b.messages[uid]
		flags := slices.DeleteFunc(strings.Fields(m.flags), func(f string) bool { return f == flag })
		if set {
			flags = append(flags, flag)
		}
		slices.Sort(flags)
		m.flags = strings.Join(flags, " ")
		changed[uid] = m
	}
	sign := "-"
	if set {
		sign = "+"
	}
	all, err := u.run(c, "STORE", &imapChange{change: map[string]map[uint64]imapMessage{b.name: changed}}, "UID STORE %s %sFLAGS (%s)", uidSet(uids), sign, flag)
	if err != nil {
		return false, err
	}
	maps.Copy(b.messages, changed)
	for _, r := range all {
		uid, err := imapNumber([]response{r}, fetchedUID)
		if err != nil {
			continue // another response
		}
		modSeq, err := imapNumber([]response{r}, fetchedModSeq)
		if m, known := b.messages[uid]; err == nil && known {
			if modSeq < m.modSeq {
				u.broken("%s: the MODSEQ of UID %d was %d, and STORE made it %d", b.name, uid, m.modSeq, modSeq)
			}
			m.modSeq = modSeq
			b.messages[uid] = m
			b.highest = max(b.highest, modSeq)
		}
	}
	return true, nil
}

func (u *imapUser) expunge(c *lineConn, b *imapMailbox) error {
	uids := u.some(b, 1+u.random.IntN(6))
	if stored, err := u.store(c, b, uids, `\Deleted`, true); !stored {
		return err
	}
	if _, err := u.run(c, "EXPUNGE", &imapChange{remove: map[string][]uint64{b.name: uids}}, "UID EXPUNGE %s", uidSet(uids)); err != nil {
		return err
	}
	for _, uid := range uids {
		delete(b.messages, uid)
	}
	return nil
}

// transfer copies or moves messages.
func (u *imapUser) transfer(c *lineConn, from, to *imapMailbox, move bool) error {
	if _, err := c.do("SELECT %s", from.name); err != nil {
		return err
	}
	uids := u.some(from, 1+u.random.IntN(3))
	var messages []imapMessage
	for _, uid := range uids {
		m := from.messages[uid]
		m.modSeq = 0
		messages = append(messages, m)
	}
	change, command := &imapChange{add: map[string][]imapMessage{to.name: messages}}, "COPY"
	if move {
		change.remove, command = map[string][]uint64{from.name: uids}, "MOVE"
	}
	all, err := u.run(c, command, change, "UID %s %s %s", command, uidSet(uids), to.name)
	if err != nil {
		return err
	}
	for _, r := range all {
		found := copiedUIDs.FindStringSubmatch(r.text)
		if found == nil {
			continue
		}
		sources, targets := expandSet(found[1]), expandSet(found[2])
		if !slices.Equal(sources, uids) || len(targets) != len(uids) {
			return fmt.Errorf("%w: %s of %v answers %s", errRefused, command, uids, r.text)
		}
		for i, uid := range targets {
			to.enter(uid, messages[i], u.broken)
			if move {
				delete(from.messages, uids[i])
			}
		}
		return nil
	}
	return fmt.Errorf("%w: no COPYUID in %q", errRefused, all)
}

// expandSet returns the numbers of a set.
func expandSet(set string) (uids []uint64) {
	for part := range strings.SplitSeq(set, ",") {
		first, last, is := strings.Cut(part, ":")
		if !is {
			last = first
		}
		a, _ := strconv.ParseUint(first, 10, 64) // what is no number is not equal to what is expected
		z, _ := strconv.ParseUint(last, 10, 64)
		for ; a <= z && len(uids) < 1000; a++ {
			uids = append(uids, a)
		}
	}
	return uids
}
