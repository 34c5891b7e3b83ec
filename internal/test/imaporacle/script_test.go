//go:build peers

package imaporacle

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
)

// A command is sent on one of the two connections. A continuation is awaited before each part but the first. In its text, $H is the
// HIGHESTMODSEQ that STATUS returned last on this connection, and $N the number after it.
type command struct {
	on      int
	name    string // UID FETCH, for example
	parts   []string
	invalid bool   // the syntax is not valid
	about   string // the name of a mailbox that was created with the separator at its end
}

func (c *command) String() string {
	text := strings.Join(c.parts, "")
	if len(text) > 300 {
		text = text[:200] + " ... " + text[len(text)-80:]
	}
	return fmt.Sprintf("%d: %q", c.on+1, text)
}

// known is a mailbox as the writer of a script expects it.
type known struct {
	uids []uint32
	gone map[uint32]bool // messages with \Deleted
	next uint32
}

// writer writes a script. It follows the state of the mailboxes roughly, so that most commands have something to do.
type writer struct {
	*rand.Rand
	seed   uint64
	boxes  map[string]*known
	open   [2]string // selected mailbox
	reads  [2]bool   // by EXAMINE
	sync   [2]bool   // ENABLE QRESYNC
	marked [2]bool   // STATUS has returned the HIGHESTMODSEQ of the selected mailbox
	ended  bool      // no command can follow
	all    []command
}

var defaults = []string{"Archive", "Drafts", "INBOX", "Junk", "Sent", "Trash"}

// script returns the commands of a seed.
func script(seed uint64) []command {
	w := &writer{Rand: rand.New(rand.NewPCG(seed, 1)), seed: seed, boxes: map[string]*known{}}
	for _, name := range defaults {
		w.boxes[name] = newKnown()
	}
	for range 1 + w.IntN(4) {
		w.append(w.IntN(2), "INBOX")
	}
	for on := range 2 {
		w.selectBox(on, "INBOX", w.IntN(6) == 0)
	}
	for n := 12 + w.IntN(14); n > 0 && !w.ended; n-- {
		w.step(w.IntN(2))
	}
	return w.all
}

func newKnown() *known { return &known{gone: map[uint32]bool{}, next: 1} }

func (w *writer) one(all ...string) string { return all[w.IntN(len(all))] }

func (w *writer) add(on int, name, args string, more ...string) {
	text := name
	if args != "" {
		text += " " + args
	}
	w.all = append(w.all, command{on: on, name: name, parts: append([]string{text}, more...)})
}

func (w *writer) step(on int) {
	open := w.boxes[w.open[on]]
	n := w.IntN(100)
	switch {
	case n < 14:
		w.append(on, w.box())
	case n < 34:
		w.mailboxes(on)
	case n < 37:
		w.add(on, "ENABLE", w.one("CONDSTORE", "CONDSTORE", "QRESYNC", "X-UNKNOWN", "CONDSTORE X-UNKNOWN"))
		w.sync[on] = w.sync[on] || strings.HasSuffix(w.all[len(w.all)-1].parts[0], "QRESYNC")
	case n < 40:
		w.invalid(on)
	case n < 42:
		w.add(on, "NOOP", "")
	case n < 43:
		w.all = append(w.all, command{on: on, name: "IDLE", parts: []string{"IDLE\r\n", "DONE"}})
	case n < 50 || open == nil:
		w.selectBox(on, w.box(), w.IntN(5) == 0)
	case n < 66:
		w.fetch(on, open)
	case n < 76:
		w.store(on, open)
	case n < 82:
		w.copy(on, open)
	case n < 85:
		w.expunge(on, open)
	case n < 97:
		w.search(on, open)
	case n < 98:
		w.add(on, "CHECK", "")
	case n < 99:
		w.add(on, "UNSELECT", "")
		w.open[on] = ""
	default:
		w.add(on, "CLOSE", "")
		if !w.reads[on] {
			open.expunge(nil)
		}
		w.open[on] = ""
	}
}

// box returns the name of a mailbox that exists, often the inbox and rarely of one that does not exist.
func (w *writer) box() string {
	if n := w.IntN(20); n < 9 {
		return w.one("INBOX", "INBOX", "inbox")
	} else if n == 9 {
		return "missing"
	}
	return w.one(w.names()...)
}

func (w *writer) names() []string {
	all := make([]string, 0, len(w.boxes))
	for name := range w.boxes {
		all = append(all, name)
	}
	slices.Sort(all)
	return all
}

func (w *writer) find(name string) *known {
	if strings.EqualFold(name, "INBOX") {
		name = "INBOX"
	}
	return w.boxes[name]
}

// newName returns the name of a mailbox that does not exist, in one that exists or at the top.
func (w *writer) newName() string {
	for {
		name := w.one("work", "Work", "home", "a b", "&AOQ-", "x&-y", "2026", "per%cent")
		if w.IntN(3) == 0 {
			if parent := w.one(w.names()...); parent != "INBOX" && strings.Count(parent, "/") < 2 {
				name = parent + "/" + name
			}
		}
		if w.boxes[name] == nil {
			return name
		}
	}
}

func quote(name string) string {
	if strings.ContainsAny(name, " %\\") || name == "" {
		return `"` + name + `"`
	}
	return name
}

func (w *writer) hasChildren(name string) bool {
	return slices.ContainsFunc(w.names(), func(other string) bool { return strings.HasPrefix(other, name+"/") })
}

// mailboxes adds a command about mailboxes.
func (w *writer) mailboxes(on int) {
	switch w.IntN(16) {
	case 0, 1, 2:
		name := w.newName()
		w.boxes[name] = newKnown()
		if w.IntN(12) > 0 {
			w.add(on, "CREATE", quote(name))
			return
		}
		w.add(on, "CREATE", quote(name+"/"))
		w.add(on, "LIST", `"" `+quote(name))
		w.all[len(w.all)-1].about = name
		w.ended = true
	case 3:
		w.add(on, "CREATE", quote(w.one(append(w.names(), "inbox")...)))
	case 4:
		name := w.one(w.names()...)
		if w.hasChildren(name) && w.IntN(8) > 0 {
			return
		}
		w.add(on, "DELETE", quote(name))
		if name != "INBOX" {
			delete(w.boxes, name)
			w.closed(name)
		}
	case 5:
		w.add(on, "DELETE", w.one("missing", "INBOX", "inbox"))
	case 6:
		w.rename(on)
	case 7:
		w.add(on, "SUBSCRIBE", quote(w.one(append(w.names(), "missing")...)))
	case 8:
		w.add(on, "UNSUBSCRIBE", quote(w.one(append(w.names(), "missing")...)))
	case 9, 10:
		w.add(on, "LIST", w.pattern())
	case 11:
		w.add(on, "LSUB", w.pattern())
	case 12:
		w.add(on, "NAMESPACE", "")
	default:
		items := []string{"MESSAGES", "UNSEEN", "UIDNEXT", "UIDVALIDITY", "RECENT"}
		w.Shuffle(len(items), func(i, j int) { items[i], items[j] = items[j], items[i] })
		w.add(on, "STATUS", quote(w.box())+" ("+strings.Join(items[:1+w.IntN(len(items))], " ")+")")
	}
}

// closed notes that a mailbox does not exist any more.
func (w *writer) closed(name string) {
	for on := range w.open {
		if w.open[on] == name {
			w.open[on] = ""
		}
	}
}

func (w *writer) pattern() string {
	return w.one(`""`, `""`, `""`, "work/", "Work") + " " + w.one("*", "*", "%", `""`, "INBOX", "inbox", "w*", "%/%", "*o*", `"a b"`, "missing", "Arch%", "Work/%")
}

func (w *writer) rename(on int) {
	from, to := w.one(w.names()...), w.newName()
	switch {
	case w.IntN(6) == 0:
		from = "missing"
	case w.IntN(6) == 0:
		to = w.one(w.names()...)
	}
	w.add(on, "RENAME", quote(from)+" "+quote(to))
	box := w.boxes[from]
	if box == nil || w.boxes[to] != nil || strings.HasPrefix(to, from+"/") {
		return
	}
	w.boxes[to] = box
	if from == "INBOX" {
		w.add(on, "STATUS", quote(to)+" (MESSAGES UNSEEN)")
		w.ended = true // UIDs differ from now on
		return
	}
	delete(w.boxes, from)
	for _, name := range w.names() {
		if below, is := strings.CutPrefix(name, from+"/"); is {
			w.boxes[to+"/"+below] = w.boxes[name]
			delete(w.boxes, name)
			w.closed(name)
		}
	}
	w.closed(from)
}

func (w *writer) selectBox(on int, name string, readOnly bool) {
	command, parameter := "SELECT", ""
	if readOnly {
		command = "EXAMINE"
	}
	if w.IntN(8) == 0 {
		parameter = " (CONDSTORE)"
	}
	w.add(on, command, quote(name)+parameter)
	w.open[on], w.reads[on], w.marked[on] = "", readOnly, false
	if w.find(name) != nil {
		w.open[on] = name
		if strings.EqualFold(name, "INBOX") {
			w.open[on] = "INBOX"
		}
		if w.sync[on] { // so that VANISHED can be compared
			w.add(on, "FETCH", "1:* (UID FLAGS MODSEQ)")
		}
	}
}

var flags = []string{`\Seen`, `\Answered`, `\Flagged`, `\Deleted`, `\Deleted`, `\Draft`, "work", "$Forwarded", "Work2"}

func (w *writer) flagList() string {
	var all []string
	for range w.IntN(3) {
		all = append(all, w.one(flags...))
	}
	return "(" + strings.Join(all, " ") + ")"
}

func (w *writer) append(on int, name string) {
	text := message(w.seed*100 + uint64(len(w.all)))
	list := w.flagList()
	args := quote(name) + " "
	if w.IntN(3) > 0 {
		args += list + " "
	} else {
		list = ""
	}
	args += fmt.Sprintf("\"%2d-%s-20%02d %02d:%02d:00 %s\" ", 1+w.IntN(28), w.one("Jan", "Feb", "Nov"), 19+w.IntN(3), w.IntN(24), w.IntN(60), w.one("+0000", "+0200", "-0500"))
	if w.IntN(2) == 0 {
		w.add(on, "APPEND", args+fmt.Sprintf("{%d+}\r\n%s", len(text), text))
	} else {
		w.add(on, "APPEND", args+fmt.Sprintf("{%d}\r\n", len(text)), text)
	}
	if box := w.find(name); box != nil {
		box.add(strings.Contains(list, `\Deleted`))
	}
}

func (k *known) add(deleted bool) {
	k.uids = append(k.uids, k.next)
	k.gone[k.next] = deleted
	k.next++
}

// expunge removes the messages with \Deleted; with a list, only those in it.
func (k *known) expunge(among []uint32) {
	k.uids = slices.DeleteFunc(k.uids, func(uid uint32) bool {
		return k.gone[uid] && (among == nil || slices.Contains(among, uid))
	})
}

// set returns a set of sequence numbers or UIDs, and the UIDs that it names.
func (w *writer) set(box *known, byUID bool) (text string, uids []uint32) {
	n := len(box.uids)
	number := func(i int) string {
		if byUID {
			return strconv.FormatUint(uint64(box.uids[i]), 10)
		}
		return strconv.Itoa(i + 1)
	}
	switch kind := w.IntN(12); {
	case n == 0:
		return w.one("1", "1:*", "*"), nil
	case kind == 0 && w.IntN(3) == 0: // beyond the last message
		return w.one(number(n-1)+":"+strconv.Itoa(n+20), strconv.Itoa(n+20)), nil
	case kind < 4:
		return "1:*", slices.Clone(box.uids)
	case kind == 4:
		return "*", box.uids[n-1:]
	case kind < 7:
		a, b := w.IntN(n), w.IntN(n)
		return number(a) + ":" + number(b), slices.Clone(box.uids[min(a, b) : max(a, b)+1])
	case kind == 7:
		a, b := w.IntN(n), w.IntN(n)
		return number(a) + "," + number(b), []uint32{box.uids[a], box.uids[b]}
	default:
		a := w.IntN(n)
		return number(a), box.uids[a : a+1]
	}
}

// uid returns "UID " or "".
func (w *writer) uid() string {
	if w.IntN(3) > 0 {
		return ""
	}
	return "UID "
}

func (w *writer) section() string {
	part := w.one("", "", "1", "1", "2", "1.1", "1.2", "2.1", "3", "1.1.1")
	of := w.one("", "HEADER", "TEXT", "MIME", "HEADER.FIELDS (Subject From)", "HEADER.FIELDS.NOT (Subject X-Odd)", "HEADER.FIELDS (X-ODD)", "HEADER.FIELDS (missing)")
	if of == "MIME" && part == "" {
		of = ""
	}
	if part != "" && of != "" {
		part += "."
	}
	text := w.one("BODY.PEEK[", "BODY.PEEK[", "BODY[") + part + of + "]"
	if w.IntN(4) == 0 {
		text += fmt.Sprintf("<%d.%d>", w.IntN(3)*w.IntN(200), 1+w.IntN(300))
	}
	return text
}

// mark asks for the HIGHESTMODSEQ to which $H and $N refer, if there is none yet or sometimes.
func (w *writer) mark(on int) {
	if !w.marked[on] || w.IntN(3) == 0 {
		w.add(on, "STATUS", quote(w.open[on])+" (HIGHESTMODSEQ)")
		w.marked[on] = true
	}
}

func (w *writer) fetch(on int, box *known) {
	uid := w.uid()
	set, _ := w.set(box, uid != "")
	var items []string
	for range 1 + w.IntN(3) {
		item := w.one("FLAGS", "UID", "INTERNALDATE", "RFC822.SIZE", "ENVELOPE", "BODY", "BODYSTRUCTURE", "RFC822.HEADER", "RFC822.TEXT", "RFC822", "MODSEQ", "SECTION", "SECTION", "SECTION", "SECTION")
		if item == "SECTION" {
			item = w.section()
		}
		if !slices.Contains(items, item) {
			items = append(items, item)
		}
	}
	args := set + " (" + strings.Join(items, " ") + ")"
	switch w.IntN(12) {
	case 0:
		args = set + " " + w.one("ALL", "FAST", "FULL")
	case 1:
		w.mark(on)
		args += " (CHANGEDSINCE $H)"
	case 2:
		args = set + " " + items[0]
	}
	w.add(on, uid+"FETCH", args)
}

func (w *writer) store(on int, box *known) {
	uid := w.uid()
	set, uids := w.set(box, uid != "")
	mode := w.one("+FLAGS", "+FLAGS", "-FLAGS", "FLAGS") + w.one("", "", ".SILENT")
	list := w.flagList()
	condition := ""
	if w.IntN(8) == 0 {
		w.mark(on)
		condition = "(UNCHANGEDSINCE $H) "
	}
	w.add(on, uid+"STORE", set+" "+condition+mode+" "+list)
	if w.reads[on] {
		return
	}
	for _, u := range uids {
		deletes := strings.Contains(list, `\Deleted`)
		switch mode[0] {
		case '+':
			box.gone[u] = box.gone[u] || deletes
		case '-':
			box.gone[u] = box.gone[u] && !deletes
		default:
			box.gone[u] = deletes
		}
	}
}

func (w *writer) copy(on int, box *known) {
	uid := w.uid()
	set, uids := w.set(box, uid != "")
	name, to := w.one("COPY", "COPY", "MOVE"), w.box()
	w.add(on, uid+name, set+" "+quote(to))
	target := w.find(to)
	if target == nil || name == "MOVE" && w.reads[on] {
		return
	}
	for _, u := range slices.Compact(slices.Sorted(slices.Values(uids))) {
		target.add(box.gone[u])
	}
	if name == "MOVE" {
		box.uids = slices.DeleteFunc(box.uids, func(u uint32) bool { return slices.Contains(uids, u) })
	}
}

func (w *writer) expunge(on int, box *known) {
	if w.IntN(3) > 0 {
		w.add(on, "EXPUNGE", "")
		if !w.reads[on] {
			box.expunge(nil)
		}
		return
	}
	set, uids := w.set(box, true)
	w.add(on, "UID EXPUNGE", set)
	if !w.reads[on] && uids != nil {
		box.expunge(uids)
	}
}

func (w *writer) search(on int, box *known) {
	args := w.one("", "", "", "RETURN () ", "RETURN (MIN MAX) ", "RETURN (ALL COUNT) ", "RETURN (COUNT) ", "RETURN (SAVE) ", "CHARSET UTF-8 ", "CHARSET US-ASCII ", "CHARSET X-UNKNOWN ")
	for i := range 1 + w.IntN(3) {
		if i > 0 {
			args += " "
		}
		args += w.key(box, 2)
	}
	if strings.Contains(args, "$N") {
		w.mark(on)
	}
	w.add(on, w.uid()+"SEARCH", args)
}

// key returns a search key.
func (w *writer) key(box *known, depth int) string {
	if depth > 0 {
		switch w.IntN(10) {
		case 0:
			return "NOT " + w.key(box, depth-1)
		case 1:
			return "OR " + w.key(box, depth-1) + " " + w.key(box, depth-1)
		case 2:
			return "(" + w.key(box, depth-1) + " " + w.key(box, depth-1) + ")"
		}
	}
	text := w.one("banana", "BANANA", `"the banana"`, "example", "report", "Ann", "missing", `"a line"`, "start", "bytes", `""`, "caf\xc3\xa9", "gr\xc3\xbc\xc3\x9fe", "GR\xc3\x9c\xc3\x9fE")
	if !isASCII(text) {
		text = fmt.Sprintf("{%d+}\r\n%s", len(text), text)
	}
	date := fmt.Sprintf("%d-%s-20%d", 1+w.IntN(28), w.one("Jan", "Feb", "Nov"), 19+w.IntN(3))
	switch w.IntN(9) {
	case 0, 1, 2:
		return w.one("ALL", "ANSWERED", "UNANSWERED", "DELETED", "UNDELETED", "DRAFT", "UNDRAFT", "FLAGGED", "UNFLAGGED", "SEEN", "UNSEEN", "NEW", "OLD", "RECENT", "KEYWORD work", "UNKEYWORD work", "KEYWORD $Forwarded")
	case 3:
		return w.one("BCC", "CC", "FROM", "SUBJECT", "TO") + " " + text
	case 4:
		return w.one("BODY", "TEXT") + " " + text
	case 5:
		return "HEADER " + w.one("Subject", "X-Odd", "Message-ID", "Content-Type", "missing") + " " + text
	case 6:
		return w.one("BEFORE", "ON", "SINCE", "SENTBEFORE", "SENTON", "SENTSINCE") + " " + date
	case 7:
		return w.one("LARGER", "SMALLER") + " " + strconv.Itoa(w.IntN(1500))
	default:
		if w.IntN(4) == 0 {
			// A server gives the messages of one change one ModSeq or several, so the last change before the mark is not compared.
			return "MODSEQ $N"
		}
		if w.IntN(2) == 0 {
			set, _ := w.set(box, true)
			return "UID " + set
		}
		set, _ := w.set(box, false)
		return set
	}
}

func isASCII(s string) bool { return !strings.ContainsFunc(s, func(r rune) bool { return r >= 0x80 }) }

// invalid adds a command that breaks the syntax.
func (w *writer) invalid(on int) {
	text := w.one("XYZZY", "FETCH", "FETCH 1", "FETCH 0 FLAGS", "FETCH 1 (FLAGS", "FETCH 1 BODY[", "FETCH 1 BODY[X]", "FETCH 1 (FLAGS))", "FETCH x FLAGS", "FETCH 1 UNKNOWN", "STORE 1 FLAGS", "STORE 1 +FLAGS (\\Seen", "STORE 1 FLAGS (\\Unknown)",
		"SEARCH", "SEARCH UNKNOWN", "SEARCH (ALL", "SEARCH OR ALL", "SEARCH BEFORE yesterday", "STATUS INBOX", "STATUS INBOX (UNKNOWN)", "SELECT", "CREATE", "RENAME a", "APPEND INBOX", "LIST \"\"", "COPY 1", "UID", "UID NOOP", "EXPUNGE 1", "NOOP x", "CHECK x", "ENABLE", "LOGIN a b", "SUBSCRIBE", "UID FETCH 1", "MOVE 1")
	name, _, _ := strings.Cut(text, " ")
	w.add(on, name, strings.TrimPrefix(text[len(name):], " "))
	w.all[len(w.all)-1].invalid = true
}
