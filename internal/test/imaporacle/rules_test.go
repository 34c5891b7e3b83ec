//go:build peers

package imaporacle

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// A rule explains differences. The sentence of an RFC permits the answer of Fanfare, or says what Dovecot breaks.
type rule struct {
	name     string
	rfc      string // number and section
	sentence string
	why      string
	applies  func(d *difference) bool
	ends     bool // the servers have different states afterwards, so the script ends
}

// own returns the key without the prefix of the other connection.
func (d *difference) own() string { return strings.TrimPrefix(d.key, "other: ") }

// prefix returns the prefix of the key.
func (d *difference) prefix() string { return strings.TrimSuffix(d.key, d.own()) }

func (d *difference) is(names ...string) bool { return slices.Contains(names, d.command.name) }

func (d *difference) text() string { return strings.Join(d.command.parts, "") }

func (d *difference) statuses() string { return d.a["status"] + " " + d.b["status"] }

// item returns the item of a field of a message, or "".
func (d *difference) item() string {
	rest, is := strings.CutPrefix(d.own(), "message ")
	if !is {
		return ""
	}
	_, item, _ := strings.Cut(rest, " ")
	return item
}

// code5530 reports whether a response code is one of those that RFC 5530 added.
func code5530(code string) bool {
	name, _, _ := strings.Cut(code, " ")
	return slices.Contains([]string{"", "UNAVAILABLE", "EXPUNGEISSUED", "CANNOT", "CLIENTBUG", "ALREADYEXISTS", "NONEXISTENT", "SERVERBUG", "LIMIT", "NOPERM", "INUSE", "OVERQUOTA"}, name)
}

// sameFlags reports whether two lists differ only in keywords that no message has.
func (d *difference) sameFlags() bool {
	a, b := strings.Fields(d.dovecot), strings.Fields(d.fanfare)
	used := ""
	for _, f := range []fields{d.a, d.b} {
		for key, value := range f {
			if strings.HasPrefix(key, d.prefix()+"known ") {
				used += " " + value
			}
		}
	}
	for _, word := range append(slices.Clone(a), b...) {
		if slices.Contains(a, word) != slices.Contains(b, word) && (strings.HasPrefix(word, `\`) || slices.Contains(strings.Fields(used), word)) {
			return false
		}
	}
	return true
}

// changes reports whether a command changes the selected mailbox.
func (d *difference) changes() bool {
	return d.is("STORE", "UID STORE", "EXPUNGE", "UID EXPUNGE", "MOVE", "UID MOVE")
}

// withoutMark returns the attributes of LIST without \Marked and \UnMarked.
func withoutMark(attributes string) string {
	return strings.Join(slices.DeleteFunc(strings.Fields(attributes), func(a string) bool { return a == `\Marked` || a == `\UnMarked` }), " ")
}

// withoutUse returns the attributes of LIST without marks and special uses.
func withoutUse(attributes string) string {
	return strings.Join(slices.DeleteFunc(strings.Fields(withoutMark(attributes)), func(a string) bool {
		return slices.Contains(defaults, strings.TrimPrefix(a, `\`))
	}), " ")
}

// negatedFlags are keys that Dovecot makes into one: NOT (A B), and OR NOT A NOT B.
var negatedFlags = regexp.MustCompile(`NOT \((?:ANSWERED|DELETED|DRAFT|FLAGGED|RECENT|SEEN) (?:ANSWERED|DELETED|DRAFT|FLAGGED|RECENT|SEEN)\)|` +
	`OR (?:UNANSWERED|UNDELETED|UNDRAFT|UNFLAGGED|UNSEEN|OLD|NOT [A-Z]+) (?:UNANSWERED|UNDELETED|UNDRAFT|UNFLAGGED|UNSEEN|OLD|NOT [A-Z]+)`)

// isNegatedSearch reports whether a search has keys that Dovecot evaluates without regard to NOT: two limits of one kind, a ModSeq above the
// highest one (it finds nothing), and several flags (it finds too few messages).
func (d *difference) isNegatedSearch() bool {
	if !d.is("SEARCH", "UID SEARCH") || !slices.Contains([]string{"SEARCH", "ESEARCH ALL", "ESEARCH COUNT", "ESEARCH MIN", "ESEARCH MAX"}, d.key) {
		return false
	}
	words := " " + strings.NewReplacer("(", " ", ")", " ").Replace(d.text()) + " "
	for _, limit := range []string{"SMALLER", "LARGER", "BEFORE", "SINCE", "SENTBEFORE", "SENTSINCE"} {
		if strings.Contains(words, " NOT ") && strings.Count(words, " "+limit+" ") > 1 {
			return true
		}
	}
	if strings.Contains(words, " NOT ") && strings.Contains(words, " MODSEQ ") && slices.Contains([]string{"", "0", "()"}, d.dovecot) {
		return true
	}
	return slices.ContainsFunc(negatedFlags.FindAllString(d.text(), -1), func(keys string) bool {
		return strings.Contains(keys, "SEEN") || strings.Contains(keys, "DELETED")
	}) && d.dovecotFindsFewer()
}

// dovecotFindsFewer reports whether the messages that Dovecot finds can be a part of those that Fanfare finds.
func (d *difference) dovecotFindsFewer() bool {
	a, _ := strconv.Atoi(d.dovecot)
	b, _ := strconv.Atoi(d.fanfare)
	switch d.key {
	case "ESEARCH COUNT", "ESEARCH MAX":
		return a < b
	case "ESEARCH MIN":
		return d.dovecot == "" || a > b
	}
	all := strings.Fields(strings.Trim(d.fanfare, "()"))
	return !slices.ContainsFunc(strings.Fields(strings.Trim(d.dovecot, "()")), func(n string) bool { return !slices.Contains(all, n) })
}

var rules = []rule{
	{
		name: "STORE without a change",
		rfc:  "RFC 3501, section 6.4.6", sentence: "The new value of the flags is returned as if a FETCH of those flags was done.",
		why: "Dovecot returns the flags of changed messages only.",
		applies: func(d *difference) bool {
			return d.dovecot == "" && d.is("STORE", "UID STORE") && slices.Contains([]string{"FLAGS", "Recent", "UID", "MODSEQ"}, d.item())
		},
	},
	{
		name: "flags that one client knows",
		rfc:  "RFC 3501, section 7", sentence: "The client MUST be prepared to accept any response at all times.",
		why: "A client can know the flags of a message that the other has not seen yet. Flags that both know are compared.",
		applies: func(d *difference) bool {
			return strings.HasPrefix(d.own(), "known ") && (d.dovecot == "" || d.fanfare == "")
		},
	},
	{
		name: "first MODSEQ",
		rfc:  "RFC 3501, section 7", sentence: "The client MUST be prepared to accept any response at all times.",
		why: "The ModSeq of a message is new to one client, because the other server has sent it earlier. Later ones are compared with it.",
		applies: func(d *difference) bool {
			return d.item() == "MODSEQ" && (d.dovecot == "new" || d.fanfare == "new") && d.dovecot != "" && d.fanfare != ""
		},
	},
	{
		name: "HIGHESTMODSEQ of SELECT",
		rfc:  "RFC 4551, section 3.1.1", sentence: "A server supporting the persistent storage of mod-sequences for the mailbox MUST send the OK untagged response including HIGHESTMODSEQ response code with every successful SELECT or EXAMINE command",
		why: "Dovecot sends it only after CONDSTORE was used.",
		applies: func(d *difference) bool {
			return d.own() == "untagged OK HIGHESTMODSEQ" && d.dovecot == "" && d.is("SELECT", "EXAMINE")
		},
	},
	{
		name: "status of the mailbox without SELECT",
		rfc:  "RFC 3501, section 7", sentence: "The client MUST be prepared to accept any response at all times.",
		why: "With QRESYNC, Dovecot sends HIGHESTMODSEQ also after other commands. The servers send PERMANENTFLAGS at different times after the keywords change; FLAGS is compared after each command.",
		applies: func(d *difference) bool {
			if d.own() == "untagged OK PERMANENTFLAGS" {
				return !d.is("SELECT", "EXAMINE") && (d.dovecot == "" || d.fanfare == "")
			}
			return (d.own() == "untagged OK HIGHESTMODSEQ" || d.own() == "code" && d.dovecot == "HIGHESTMODSEQ") && d.fanfare == ""
		},
	},
	{
		name: "OBJECTID",
		rfc:  "RFC 8474, section 4.2", sentence: "A server advertising the OBJECTID capability MUST return an untagged OK response with the MAILBOXID response code on all successful SELECT and EXAMINE commands.",
		why: "Dovecot does not advertise it. CREATE returns the same code.",
		applies: func(d *difference) bool {
			return d.own() == "untagged OK MAILBOXID" && d.is("SELECT", "EXAMINE") || d.own() == "code" && d.fanfare == "MAILBOXID" && d.is("CREATE")
		},
	},
	{
		name: "SELECT without a name",
		rfc:  "RFC 3501, section 6.3.1", sentence: "Consequently, if a mailbox is selected and a SELECT command that fails is attempted, no mailbox is selected.",
		why: "Dovecot also closes the mailbox if the arguments cannot be read. Fanfare does not begin such a command.",
		applies: func(d *difference) bool {
			return d.own() == "untagged OK CLOSED" && d.is("SELECT") && d.command.invalid
		},
		ends: true,
	},
	{
		name: "response codes of RFC 5530",
		rfc:  "RFC 3501, section 7.1", sentence: "Client implementations SHOULD ignore response codes that they do not recognize.",
		why:     "RFC 5530 adds codes to responses that can also be sent without them. All other codes are compared.",
		applies: func(d *difference) bool { return d.own() == "code" && code5530(d.dovecot) && code5530(d.fanfare) },
	},
	{
		name: "keywords that no message has",
		rfc:  "RFC 3501, section 7.2.6", sentence: "The flag parenthesized list identifies the flags (at a minimum, the system-defined flags) that are applicable for this mailbox.",
		why: "Dovecot lists a keyword forever, and also if it was only searched for. Fanfare lists those that messages have. The rest of the lists is compared.",
		applies: func(d *difference) bool {
			return (d.own() == "flags list" || d.own() == "untagged OK PERMANENTFLAGS") && d.sameFlags()
		},
	},
	{
		name: "changes in a read-only mailbox",
		rfc:  "RFC 3501, section 6.3.2", sentence: "No changes to the permanent state of the mailbox, including per-user state, are permitted",
		why: "Dovecot answers STORE and EXPUNGE with OK and changes nothing, and executes MOVE.",
		applies: func(d *difference) bool {
			if !d.changes() || d.b["status"] != "NO" || d.b["code"] != "CANNOT" {
				return false
			}
			return d.own() == "status" || d.own() == "code" || d.is("MOVE", "UID MOVE")
		},
		ends: true,
	},
	{
		name: "arguments that the grammar does not have",
		rfc:  "RFC 3501, section 7.1.3", sentence: "When tagged, it reports a protocol-level error in the client's command",
		why:     "Dovecot executes some commands with arguments that are missing or not part of the grammar.",
		applies: func(d *difference) bool { return d.command.invalid && d.statuses() == "OK BAD" },
		ends:    true,
	},
	{
		name: "marks of mailboxes",
		rfc:  "RFC 3501, section 7.2.2", sentence: "If it is not feasible for the server to determine whether or not the mailbox is \"interesting\", or if the name is a \\Noselect name, the server SHOULD NOT send either \\Marked or \\Unmarked.",
		why: "Fanfare sends neither. The other attributes are compared.",
		applies: func(d *difference) bool {
			return d.is("LIST") && d.fanfare != "" && withoutMark(d.dovecot) == d.fanfare
		},
	},
	{
		name: "CREATE of a name that ends with the separator",
		rfc:  "RFC 3501, section 6.3.3", sentence: "Server implementations that do not require this declaration MUST ignore the declaration.",
		why: "Dovecot creates a directory that cannot be selected, or refuses the name.",
		applies: func(d *difference) bool {
			return d.command.about != "" && strings.HasPrefix(d.own(), "LIST ") || d.is("CREATE") && strings.HasSuffix(strings.TrimSuffix(d.text(), `"`), "/") && d.statuses() == "NO OK"
		},
		ends: true,
	},
	{
		name: "DELETE of a mailbox with others in it",
		rfc:  "RFC 9051, section 6.3.5", sentence: "If the server implementation does not permit deleting the name while inferior hierarchical names exist, then it SHOULD disallow the DELETE command by returning a tagged NO response.",
		why: "Fanfare has no names that cannot be selected, and refuses the command.",
		applies: func(d *difference) bool {
			return d.is("DELETE") && d.statuses() == "OK NO" && d.b["code"] == "HASCHILDREN"
		},
		ends: true,
	},
	{
		name: "RENAME of the inbox",
		rfc:  "RFC 3501, section 6.3.5", sentence: "It moves all messages in INBOX to a new mailbox with the given name, leaving INBOX empty.",
		why: "Dovecot renames the mailbox, and ends the connections that have selected it.",
		applies: func(d *difference) bool {
			return d.is("RENAME") && strings.HasPrefix(d.text(), "RENAME INBOX ") && (d.prefix() != "" || d.own() != "code" && d.own() != "status" || d.a["connection"] == "ended")
		},
		ends: true,
	},
	{
		name: "RENAME or DELETE of a selected mailbox",
		rfc:  "RFC 3501, section 3.4", sentence: "This state can be entered as a result of a client request (via the LOGOUT command) or by unilateral action on the part of either the client or server.",
		why: "Dovecot ends the connections that have selected the mailbox. Here they go on, except those of others after DELETE.",
		applies: func(d *difference) bool {
			p := d.prefix()
			return d.is("RENAME", "DELETE") && d.a[p+"connection"] == "ended" && d.b[p+"status"] == "OK"
		},
		ends: true,
	},
	{
		name: "special use of a renamed mailbox",
		rfc:  "RFC 6154, section 2", sentence: "An IMAP server that supports this extension MAY include any or all of the following attributes in responses to the non-extended IMAP LIST command.",
		why: "The use moves with the mailbox. In Dovecot, it belongs to the name. The other attributes are compared.",
		applies: func(d *difference) bool {
			return d.is("LIST") && d.dovecot != "" && withoutMark(d.dovecot) == withoutUse(d.fanfare) && !slices.Contains(defaults, strings.TrimPrefix(d.key, "LIST "))
		},
	},
	{
		name: "root of LIST",
		rfc:  "RFC 3501, section 6.3.8", sentence: "The value returned as the root MAY be the empty string if the reference is non-rooted or is an empty string.",
		why: "Dovecot returns the reference.",
		applies: func(d *difference) bool {
			return d.is("LIST") && strings.HasSuffix(d.text(), ` ""`) && strings.HasPrefix(d.own(), "LIST ")
		},
	},
	{
		name: "ENABLE of what is enabled",
		rfc:  "RFC 9051, section 6.3.1", sentence: "When multiple ENABLE commands are issued, each corresponding ENABLED response SHOULD only contain extensions enabled by the corresponding ENABLE command",
		why: "Dovecot lists an extension that was enabled before.",
		applies: func(d *difference) bool {
			return d.is("ENABLE") && strings.HasPrefix(d.own(), "ENABLED") && d.fanfare == ""
		},
	},
	{
		name: "MODSEQ of SEARCH",
		rfc:  "RFC 4551, section 3.4", sentence: "If client specifies a MODSEQ criterion in a SEARCH command and the server returns a non-empty SEARCH result, the server MUST also append (to the end of the untagged SEARCH response) the highest mod-sequence for all messages being returned.",
		why: "Dovecot does not do so if the criterion decides nothing, as in OR ALL MODSEQ 1.",
		applies: func(d *difference) bool {
			return (d.own() == "SEARCH MODSEQ" || d.own() == "ESEARCH MODSEQ") && d.dovecot == ""
		},
	},
	{
		name: "SEARCH that only saves",
		rfc:  "RFC 9051, section 6.4.4", sentence: "In absence of any other SEARCH result option, the SAVE result option also suppresses any ESEARCH response that would have been otherwise returned by the SEARCH command.",
		why: "Dovecot sends a response without data if there is a MODSEQ criterion.",
		applies: func(d *difference) bool {
			return strings.HasPrefix(d.own(), "ESEARCH") && d.fanfare == "" && strings.Contains(d.text(), "RETURN (SAVE)")
		},
	},
	{
		name: "NOT in SEARCH",
		rfc:  "RFC 3501, section 6.4.4", sentence: "Messages that do not match the specified search key.",
		why:     "Dovecot simplifies some keys without regard to NOT: NOT (SEEN DRAFT) finds nothing if all messages are seen, NOT SMALLER 300 NOT SMALLER 400 finds what NOT SMALLER 300 finds, and NOT MODSEQ finds nothing if the number is above the highest ModSeq.",
		applies: (*difference).isNegatedSearch,
	},
	{
		name: "last octet of a header",
		rfc:  "RFC 3501, section 6.4.5", sentence: "This is done by appending an open angle bracket (\"<\"), the octet position of the first desired octet, a period, the maximum number of octets desired, and a close angle bracket (\">\") to the part specifier.",
		why: "Dovecot returns CR instead of LF if only the last octet of HEADER.FIELDS is desired.",
		applies: func(d *difference) bool {
			return strings.HasPrefix(d.item(), "BODY[") && strings.Contains(d.item(), "HEADER.FIELDS") && strings.HasSuffix(d.item(), ">") && d.dovecot == `"\r"` && d.fanfare == `"\n"`
		},
	},
	{
		name: "part of a part that has none",
		rfc:  "RFC 3501, section 6.4.5", sentence: "Every message has at least one part number. Non-[MIME-IMB] messages, and non-multipart [MIME-IMB] messages with no encapsulated message, only have a part 1.",
		why: "Dovecot returns a part that is not a multipart also as its own part 1.",
		applies: func(d *difference) bool {
			return strings.HasPrefix(d.item(), "BODY[") && strings.Contains(d.item(), ".1") && d.fanfare == `""`
		},
	},
}

func explain(d *difference) *rule {
	for i := range rules {
		if rules[i].applies(d) {
			return &rules[i]
		}
	}
	return nil
}
