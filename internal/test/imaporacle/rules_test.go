//go:build peers

package imaporacle

import (
	"slices"
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

// uses splits the attributes of LIST and LSUB into special uses and the rest, without marks.
func uses(attributes string) (use, rest string) {
	is := func(a string) bool { return slices.Contains(defaults, strings.TrimPrefix(a, `\`)) }
	all := strings.Fields(withoutMark(attributes))
	rest = strings.Join(slices.DeleteFunc(slices.Clone(all), is), " ")
	return strings.Join(slices.DeleteFunc(all, func(a string) bool { return !is(a) }), " "), rest
}

// useMoved reports whether responses for a name differ in the special use: in Dovecot, the use is that of the name.
func (d *difference) useMoved() bool {
	_, name, _ := strings.Cut(d.own(), " ")
	ofName := ""
	if slices.Contains(defaults, name) && name != "INBOX" {
		ofName = `\` + name
	}
	use, rest := uses(d.dovecot)
	other, otherRest := uses(d.fanfare)
	return d.dovecot != "" && d.fanfare != "" && rest == otherRest && use == ofName && other != ofName
}

// isCombined reports whether Fanfare finds what Dovecot's answers to single keys give, and Dovecot finds something else.
func (d *difference) isCombined() bool {
	if d.combined == nil {
		return false
	}
	want := d.combined[d.key]
	result := func(text string) string { return strings.Trim(text, "()") }
	return result(d.fanfare) == want && result(d.dovecot) != want
}

// expunges reports whether the command removes messages from the selected mailbox.
func (d *difference) expunges() bool {
	for _, f := range []fields{d.a, d.b} {
		for key := range f {
			if d.is("EXPUNGE", "UID EXPUNGE", "MOVE", "UID MOVE") && strings.HasPrefix(key, "message ") && strings.HasSuffix(key, " expunged") {
				return true
			}
		}
	}
	return false
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
		name: "HIGHESTMODSEQ of SELECT",
		rfc:  "RFC 4551, section 3.1.1", sentence: "A server supporting the persistent storage of mod-sequences for the mailbox MUST send the OK untagged response including HIGHESTMODSEQ response code with every successful SELECT or EXAMINE command",
		why: "Dovecot sends it only after CONDSTORE was used.",
		applies: func(d *difference) bool {
			return d.own() == "untagged OK HIGHESTMODSEQ" && d.dovecot == "" && d.is("SELECT", "EXAMINE")
		},
	},
	{
		name: "HIGHESTMODSEQ after SELECT",
		rfc:  "RFC 7162, section 6", sentence: "The client MUST update its copy of the HIGHESTMODSEQ value whenever the server sends a subsequent HIGHESTMODSEQ OK response code.",
		why: "With QRESYNC, Dovecot sends it after many commands. Section 3.2.7 asks for it only if a command has expunged a message: that is compared.",
		applies: func(d *difference) bool {
			if d.fanfare != "" || d.is("SELECT", "EXAMINE") {
				return false
			}
			return d.own() == "untagged OK HIGHESTMODSEQ" || d.own() == "code" && d.dovecot == "HIGHESTMODSEQ" && (d.prefix() != "" || !d.expunges())
		},
	},
	{
		name: "PERMANENTFLAGS after SELECT",
		rfc:  "RFC 3501, section 7.1.1", sentence: "The untagged form indicates an information-only message; the nature of the information MAY be indicated by a response code.",
		why: "The servers send it at different times after the keywords change. FLAGS is compared after each command.",
		applies: func(d *difference) bool {
			return d.own() == "untagged OK PERMANENTFLAGS" && !d.is("SELECT", "EXAMINE") && (d.dovecot == "" || d.fanfare == "")
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
		name: "special use of a mailbox that was renamed or deleted",
		rfc:  "RFC 6154, section 2", sentence: "An IMAP server that supports this extension MAY include any or all of the following attributes in responses to the non-extended IMAP LIST command.",
		why:     "The use belongs to the mailbox. In Dovecot, it belongs to the name, also in LSUB if the mailbox does not exist. The other attributes are compared.",
		applies: func(d *difference) bool { return d.is("LIST", "LSUB") && d.useMoved() },
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
		why:     "Dovecot simplifies some keys without regard to NOT: NOT (SEEN DRAFT) finds nothing if all messages are seen, NOT SMALLER 300 NOT SMALLER 400 finds what NOT SMALLER 300 finds, and NOT MODSEQ finds nothing if the number is above the highest ModSeq. Dovecot's own answers to the single keys, combined by the test, must give the result of Fanfare.",
		applies: (*difference).isCombined,
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
