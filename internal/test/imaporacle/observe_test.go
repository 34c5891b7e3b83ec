//go:build peers

package imaporacle

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// fields are an observation: the values of what a client sees after a command.
type fields map[string]string

// view is what a client knows from the responses on its connection. Messages have numbers of their own, which do not change when others are
// expunged: 1 is the first message at the time of SELECT.
type view struct {
	messages []int // in the order of sequence numbers
	next     int
	flags    map[int]string
	recent   map[int]string
	uids     map[int]string
	modSeqs  map[int]uint64
	before   map[int]uint64 // modSeqs before the command
	mark     uint64         // HIGHESTMODSEQ of the last STATUS command
	recents  string
	list     string // of FLAGS
	qresync  bool
}

func newView() *view {
	return &view{next: 1, flags: map[int]string{}, recent: map[int]string{}, uids: map[int]string{}, modSeqs: map[int]uint64{}, mark: 1}
}

// reset forgets the mailbox.
func (v *view) reset() {
	qresync := v.qresync
	*v = *newView()
	v.qresync = qresync
}

// take applies responses, and adds what they say to an observation. Keys begin with a prefix.
func (v *view) take(all []*response, prefix string, f fields) {
	for _, r := range all {
		v.takeOne(r, prefix, f)
	}
	f[prefix+"messages"] = strconv.Itoa(len(v.messages))
	if len(v.messages) > 0 {
		f[prefix+"recent"] = v.recents
		f[prefix+"flags list"] = v.list
	}
	v.addFlags(prefix, f)
}

// addFlags adds the flags that the client knows to an observation.
func (v *view) addFlags(prefix string, f fields) {
	for _, id := range v.messages {
		if flags, knows := v.flags[id]; knows {
			f[prefix+fmt.Sprintf("known %d", id)] = cmp.Or(flags, "none")
		}
	}
}

func (v *view) takeOne(r *response, prefix string, f fields) {
	set := func(key, value string) {
		f[prefix+key] = value
	}
	switch r.name {
	case "OK", "NO", "BAD", "BYE":
		if r.tag != "*" {
			set("status", r.name)
			if len(r.code) > 0 {
				set("code", v.code(r))
			}
			return
		}
		key := "untagged " + r.name
		if len(r.code) > 0 {
			key += " " + strings.ToUpper(plain(r.code[0]))
		}
		set(key, v.code(r))
	case "EXISTS":
		if r.number < len(v.messages) {
			set("error", fmt.Sprintf("%d EXISTS with %d messages", r.number, len(v.messages)))
		}
		for len(v.messages) < r.number {
			v.messages = append(v.messages, v.next)
			v.next++
		}
	case "RECENT":
		v.recents = strconv.Itoa(r.number)
	case "FLAGS":
		v.list = sortedFlags(r.values[0])
	case "EXPUNGE":
		if r.number < 1 || r.number > len(v.messages) {
			set("error", fmt.Sprintf("%d EXPUNGE with %d messages", r.number, len(v.messages)))
			return
		}
		set(fmt.Sprintf("message %d expunged", v.messages[r.number-1]), "yes")
		v.messages = slices.Delete(v.messages, r.number-1, r.number)
	case "VANISHED":
		v.vanished(r, set)
	case "FETCH":
		v.fetched(r, set)
	case "LIST", "LSUB":
		key := r.name + " " + boxName(r.values[2])
		for f[prefix+key] != "" { // two responses for one name
			key += " again"
		}
		set(key, sortedFlags(r.values[0])+" "+show(r.values[1])+" "+show(r.values[3:]))
	case "STATUS":
		list, _ := r.values[1].([]any)
		for i := 0; i+1 < len(list); i += 2 {
			item, value := strings.ToUpper(plain(list[i])), show(list[i+1])
			switch item {
			case "HIGHESTMODSEQ":
				v.mark = number(list[i+1])
				value = "a number"
			case "UIDVALIDITY":
				value = "a number"
			}
			set("STATUS "+boxName(r.values[0])+" "+item, value)
		}
	case "SEARCH":
		values := r.values
		if n := len(values); n > 0 {
			if _, isList := values[n-1].([]any); isList {
				set("SEARCH MODSEQ", "a number")
				values = values[:n-1]
			}
		}
		set("SEARCH", show(values))
	case "ESEARCH":
		v.extended(r, set)
	case "ENABLED":
		set("ENABLED", "")
		for _, c := range r.values {
			set("ENABLED "+strings.ToUpper(plain(c)), "yes")
			v.qresync = v.qresync || strings.EqualFold(plain(c), "QRESYNC")
		}
	default:
		set("untagged "+r.name, show(r.values))
	}
}

// code returns a response code in a form that can be compared. Numbers that differ between servers are left out.
func (v *view) code(r *response) string {
	if len(r.code) == 0 {
		return ""
	}
	name := strings.ToUpper(plain(r.code[0]))
	args := r.code[1:]
	switch name {
	case "UIDVALIDITY":
		return name
	case "HIGHESTMODSEQ":
		return name
	case "UNSEEN":
		return fmt.Sprint(name, " ", v.at(int(number(args[0]))))
	case "PERMANENTFLAGS":
		return name + " " + sortedFlags(args[0])
	case "APPENDUID":
		return name + " " + expand(plain(args[1]))
	case "COPYUID":
		return name + " " + expand(plain(args[1])) + " " + expand(plain(args[2]))
	case "MODIFIED":
		return name + " " + expand(plain(args[0]))
	case "BADCHARSET", "MAILBOXID", "TRYCREATE":
		return name
	}
	return strings.TrimSpace(name + " " + strings.Trim(show(args), "()"))
}

// boxName returns the name of a mailbox. INBOX is case-insensitive (RFC 3501, section 5.1).
func boxName(v any) string {
	if name := plain(v); !strings.EqualFold(name, "INBOX") {
		return name
	}
	return "INBOX"
}

func number(v any) uint64 {
	n, _ := strconv.ParseUint(plain(v), 10, 64)
	return n
}

// at returns the number of the message with a sequence number, or 0.
func (v *view) at(seq int) int {
	if seq < 1 || seq > len(v.messages) {
		return 0
	}
	return v.messages[seq-1]
}

func (v *view) fetched(r *response, set func(key, value string)) {
	id := v.at(r.number)
	if id == 0 {
		set("error", fmt.Sprintf("%d FETCH with %d messages", r.number, len(v.messages)))
		return
	}
	for i := 0; i+1 < len(r.values); i += 2 {
		name, value := plain(r.values[i]), r.values[i+1]
		key := fmt.Sprintf("message %d %s", id, name)
		switch name {
		case "FLAGS":
			text := sortedFlags(value)
			without := strings.TrimPrefix(text, `\Recent`)
			v.recent[id] = "no"
			if without != text {
				v.recent[id] = "yes"
			}
			v.flags[id] = strings.TrimSpace(without)
			set(key, v.flags[id])
			set(fmt.Sprintf("message %d Recent", id), v.recent[id])
		case "UID":
			v.uids[id] = show(value)
			set(key, show(value))
		case "MODSEQ":
			list, _ := value.([]any)
			n := number(list[0])
			how := "new"
			switch before := v.before[id]; {
			case n < before:
				how = "lower"
			case n == before:
				how = "same"
			case before > 0:
				how = "higher"
			}
			v.modSeqs[id] = n
			set(key, how)
		case "INTERNALDATE":
			at, err := time.Parse("_2-Jan-2006 15:04:05 -0700", plain(value))
			if err != nil {
				set("error", err.Error())
			}
			set(key, at.UTC().Format(time.RFC3339))
		case "BODY", "BODYSTRUCTURE":
			set(key, show(structure(value)))
		default:
			set(key, show(value))
		}
	}
}

// forgetFlags forgets the flags of the messages in a set, after a STORE that did not return them. If they were kept, a server that repeats the
// flags later, though they do not change, would differ from one that does not.
func (v *view) forgetFlags(byUID bool, set string, f fields) {
	named := strings.Split(set, ",")
	for i, id := range v.messages {
		n := i + 1
		if byUID {
			var err error
			if n, err = strconv.Atoi(v.uids[id]); err != nil { // the client does not know the UID
				n = -1
			}
		}
		if n < 0 || slices.ContainsFunc(named, func(r string) bool { return inRange(r, n, i == len(v.messages)-1) }) {
			delete(v.flags, id)
			delete(f, fmt.Sprintf("known %d", id))
		}
	}
}

// inRange reports whether a part of a set names a number. The last message is also in a range with "*" that begins after it.
func inRange(r string, n int, isLast bool) bool {
	from, to, isRange := strings.Cut(r, ":")
	if !isRange {
		to = from
	}
	if isLast && (from == "*" || to == "*") {
		return true
	}
	at := func(s string) int {
		if k, err := strconv.Atoi(s); err == nil {
			return k
		}
		return 1 << 31 // "*"
	}
	a, b := at(from), at(to)
	return isRange && min(a, b) <= n && n <= max(a, b) || !isRange && a == n
}

// vanished removes messages by their UIDs (RFC 7162, section 3.2.10).
func (v *view) vanished(r *response, set func(key, value string)) {
	if list, earlier := r.values[0].([]any); earlier {
		set("VANISHED "+show(list), expand(plain(r.values[1])))
		return
	}
	gone := strings.Split(expand(plain(r.values[0])), " ")
	v.messages = slices.DeleteFunc(v.messages, func(id int) bool {
		is := slices.Contains(gone, v.uids[id])
		if is {
			set(fmt.Sprintf("message %d expunged", id), "yes")
		}
		return is
	})
}

// extended adds the pairs of an ESEARCH response (RFC 4731).
func (v *view) extended(r *response, set func(key, value string)) {
	values := r.values
	if len(values) > 0 {
		if list, is := values[0].([]any); is {
			set("ESEARCH", show(list))
			values = values[1:]
		}
	}
	if len(values) > 0 && strings.EqualFold(plain(values[0]), "UID") {
		set("ESEARCH UID", "yes")
		values = values[1:]
	}
	for i := 0; i+1 < len(values); i += 2 {
		name, value := strings.ToUpper(plain(values[i])), plain(values[i+1])
		switch name {
		case "ALL":
			value = expand(value)
		case "MODSEQ":
			value = "a number"
		}
		set("ESEARCH "+name, value)
	}
}

// sortedFlags returns a list of flags or attributes in a fixed order. System flags are compared without regard to case.
func sortedFlags(v any) string {
	list, _ := v.([]any)
	all := make([]string, len(list))
	for i, one := range list {
		all[i] = plain(one)
		for _, known := range []string{`\Answered`, `\Flagged`, `\Deleted`, `\Seen`, `\Draft`, `\Recent`} {
			if strings.EqualFold(all[i], known) {
				all[i] = known
			}
		}
	}
	slices.SortFunc(all, func(a, b string) int {
		if (a == `\Recent`) != (b == `\Recent`) { // it is separated from the others
			if a == `\Recent` {
				return -1
			}
			return 1
		}
		return strings.Compare(a, b)
	})
	return strings.Join(all, " ")
}

// expand returns the numbers of a set in their order.
func expand(set string) string {
	var all []string
	for _, r := range strings.Split(set, ",") {
		from, to, isRange := strings.Cut(r, ":")
		if !isRange {
			to = from
		}
		a, errA := strconv.Atoi(from)
		b, errB := strconv.Atoi(to)
		if errA != nil || errB != nil || b-a > 1000 {
			return set
		}
		for n := min(a, b); n <= max(a, b); n++ {
			all = append(all, strconv.Itoa(n))
		}
	}
	return strings.Join(all, " ")
}

// structure returns a body structure with types, encodings and names of parameters in upper case (RFC 2045, section 5.1).
func structure(v any) any {
	list, _ := v.([]any)
	if len(list) == 0 {
		return v
	}
	upper := func(i int) {
		if i < len(list) {
			if s, is := list[i].(quoted); is {
				list[i] = quoted(strings.ToUpper(string(s)))
			}
		}
	}
	params := func(i int) {
		if i < len(list) {
			names, _ := list[i].([]any)
			for j := 0; j < len(names); j += 2 {
				if s, is := names[j].(quoted); is {
					names[j] = quoted(strings.ToUpper(string(s)))
				}
			}
		}
	}
	disposition := func(i int) {
		if i < len(list) {
			if d, _ := list[i].([]any); len(d) == 2 {
				list[i] = structure([]any{d[0], quoted(""), d[1]})
			}
		}
	}
	if _, isMultipart := list[0].([]any); !isMultipart {
		upper(0)
		upper(1)
		params(2)
		upper(5)
		extra := 8
		switch plain(list[0]) {
		case "TEXT":
			extra = 9
		case "MESSAGE":
			if plain(list[1]) == "RFC822" && len(list) > 8 {
				list[8] = structure(list[8])
				extra = 11
			}
		}
		disposition(extra)
		return list
	}
	i := 0
	for ; i < len(list); i++ {
		if _, isPart := list[i].([]any); !isPart {
			break
		}
		list[i] = structure(list[i])
	}
	upper(i)
	params(i + 1)
	disposition(i + 2)
	return list
}
