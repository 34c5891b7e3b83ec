package syntax

import (
	"errors"
	"strings"
)

// Parse reads a command: its lines and literals without the CR LF at the end. The strings of the result are copies, and the data of
// APPEND refer to raw.
func Parse(raw []byte) (*Command, error) {
	d := &decoder{b: raw}
	c := &Command{Tag: d.run(isTagChar)}
	if c.Tag == "" || d.peek() != ' ' && d.i < len(raw) {
		return nil, &Error{Text: "the command has no valid tag"}
	}
	if !d.take(' ') {
		return nil, &Error{Tag: c.Tag, Text: "the command has no name"}
	}
	c.Name = strings.ToUpper(d.run(isAtomChar))
	if c.Name == "UID" && d.take(' ') {
		c.UID = true
		c.Name = strings.ToUpper(d.run(isAtomChar))
	}
	d.arguments(c)
	if d.err == nil {
		d.end()
	}
	if errors.Is(d.err, errUnknown) {
		return nil, &Error{Tag: c.Tag, Text: "the command " + c.FullName() + " is not known"}
	}
	if d.err != nil {
		return nil, &Error{Tag: c.Tag, Name: c.FullName(), Text: "error in " + c.FullName() + ": " + d.err.Error()}
	}
	return c, nil
}

// withoutArguments are the commands that have none.
var withoutArguments = map[string]bool{
	"CAPABILITY": true, "NOOP": true, "LOGOUT": true, "STARTTLS": true, "NAMESPACE": true, "IDLE": true, "CHECK": true, "CLOSE": true, "UNSELECT": true, "EXPUNGE": true,
}

// uidCommands can have the prefix UID.
var uidCommands = map[string]bool{"FETCH": true, "STORE": true, "COPY": true, "MOVE": true, "SEARCH": true, "EXPUNGE": true}

func (d *decoder) arguments(c *Command) {
	if c.UID && !uidCommands[c.Name] {
		d.err = errUnknown
		return
	}
	if c.UID && c.Name == "EXPUNGE" {
		d.space()
		c.Args = &Set{d.numSet()}
		return
	}
	if withoutArguments[c.Name] {
		return
	}
	read, known := readers[c.Name]
	if !known {
		d.err = errUnknown
		return
	}
	d.space()
	if d.ok() {
		c.Args = read(d)
	}
}

var errUnknown = errors.New("the command is not known")

// readers read the arguments of the commands after the first space.
var readers map[string]func(*decoder) any

func init() {
	readers = map[string]func(*decoder) any{
		"LOGIN": func(d *decoder) any {
			a := &Login{User: d.astring()}
			d.space()
			a.Password = d.astring()
			return a
		},
		"AUTHENTICATE": func(d *decoder) any {
			a := &Authenticate{Mechanism: d.keyword()}
			if d.more() {
				a.Initial = d.base64()
			}
			return a
		},
		"ENABLE": func(d *decoder) any {
			a := &Enable{Names: []string{d.keyword()}}
			for d.ok() && d.more() {
				a.Names = append(a.Names, d.keyword())
			}
			return a
		},
		"ID":           (*decoder).id,
		"SELECT":       (*decoder).selectArgs,
		"EXAMINE":      (*decoder).selectArgs,
		"CREATE":       (*decoder).create,
		"DELETE":       (*decoder).mailboxArg,
		"SUBSCRIBE":    (*decoder).mailboxArg,
		"UNSUBSCRIBE":  (*decoder).mailboxArg,
		"GETQUOTAROOT": (*decoder).mailboxArg,
		"GETQUOTA":     func(d *decoder) any { return &QuotaRoot{d.astring()} },
		"SETQUOTA": func(d *decoder) any {
			a := &QuotaRoot{d.astring()}
			d.space()
			d.list(func() {
				d.atom()
				d.space()
				d.number()
			})
			return a
		},
		"RENAME": func(d *decoder) any {
			a := &Rename{From: d.mailbox()}
			d.space()
			a.To = d.mailbox()
			return a
		},
		"LIST":     (*decoder).listArgs,
		"LSUB":     (*decoder).lsub,
		"STATUS":   (*decoder).status,
		"APPEND":   (*decoder).appendArgs,
		"COMPRESS": func(d *decoder) any { return &Compress{d.keyword()} },
		"SEARCH":   (*decoder).search,
		"FETCH":    (*decoder).fetch,
		"STORE":    (*decoder).store,
		"COPY":     (*decoder).copyArgs,
		"MOVE":     (*decoder).copyArgs,
	}
}

func (d *decoder) mailboxArg() any { return &Mailbox{d.mailbox()} }

func (d *decoder) copyArgs() any {
	a := &Copy{Set: d.numSet()}
	d.space()
	a.Mailbox = d.mailbox()
	return a
}

const maxIDParams = 30 // RFC 2971, section 3.3

func (d *decoder) id() any {
	a := &ID{}
	if d.peek() != '(' {
		d.isNIL()
		return a
	}
	d.list(func() {
		var pair [2]string
		pair[0] = d.str()
		d.space()
		if d.peek() == '"' || d.peek() == '{' {
			pair[1] = d.str()
		} else {
			d.isNIL()
		}
		if len(a.Params) == maxIDParams {
			d.fail("ID has more than %d fields", maxIDParams)
		}
		a.Params = append(a.Params, pair)
	})
	return a
}

func (d *decoder) isNIL() {
	if d.ok() && d.keyword() != "NIL" {
		d.fail("a string or NIL is missing")
	}
}

func (d *decoder) selectArgs() any {
	a := &Select{Mailbox: d.mailbox()}
	if !d.more() {
		return a
	}
	d.list(func() {
		switch name := d.keyword(); name {
		case "CONDSTORE":
			a.Condstore = true
		case "QRESYNC":
			d.space()
			a.Qresync = d.qresync()
		default:
			d.fail("the parameter %s is not known", name)
		}
	})
	return a
}

func (d *decoder) qresync() *Qresync {
	q := &Qresync{}
	d.need('(')
	q.UIDValidity = d.nonZero()
	d.space()
	q.ModSeq = d.number()
	if d.take(' ') && d.peek() != '(' {
		q.Known = d.numSet()
		if q.Known.IsSaved() {
			d.fail("$ is not permitted in QRESYNC")
		}
		d.take(' ')
	}
	if d.take('(') {
		q.MatchSeqs = d.numSet()
		d.space()
		q.MatchUIDs = d.numSet()
		d.need(')')
		if q.MatchSeqs.IsSaved() || q.MatchUIDs.IsSaved() {
			d.fail("$ is not permitted in QRESYNC")
		}
	}
	d.need(')')
	return q
}

func (d *decoder) create() any {
	a := &Create{Mailbox: d.mailbox()}
	if !d.more() {
		return a
	}
	d.list(func() {
		if name := d.keyword(); name != "USE" {
			d.fail("the parameter %s is not known", name)
			return
		}
		d.space()
		a.Use = d.flags()
	})
	return a
}

func (d *decoder) lsub() any {
	a := &List{Reference: d.astringOrEmpty()}
	d.space()
	a.Patterns = []string{d.listMailbox()}
	return a
}

// astringOrEmpty reads a reference, which is "" in most commands.
func (d *decoder) astringOrEmpty() string {
	if d.peek() == '"' || d.peek() == '{' {
		return d.str()
	}
	return d.run(isListChar)
}

func (d *decoder) listArgs() any {
	a := &List{}
	if d.peek() == '(' {
		a.Extended = true
		d.list(func() {
			switch name := d.keyword(); name {
			case "SUBSCRIBED":
				a.Subscribed, a.ReturnSubscribed = true, true
			case "REMOTE":
				a.Remote = true
			case "RECURSIVEMATCH":
				a.RecursiveMatch = true
			case "SPECIAL-USE":
				a.SpecialUse, a.ReturnSpecialUse = true, true
			default:
				d.fail("the selection option %s is not known", name)
			}
		})
		d.space()
		if a.RecursiveMatch && !a.Subscribed && !a.SpecialUse {
			d.fail("RECURSIVEMATCH needs another selection option")
		}
	}
	a.Reference = d.astringOrEmpty()
	d.space()
	if d.peek() == '(' {
		a.Extended = true
		d.list(func() { a.Patterns = append(a.Patterns, d.listMailbox()) })
		if len(a.Patterns) == 0 {
			d.fail("a pattern is missing")
		}
	} else {
		a.Patterns = []string{d.listMailbox()}
	}
	if !d.more() {
		return a
	}
	if name := d.keyword(); name != "RETURN" {
		d.fail("RETURN is missing")
	}
	d.space()
	a.Extended = true
	d.list(func() {
		switch name := d.keyword(); name {
		case "SUBSCRIBED":
			a.ReturnSubscribed = true
		case "CHILDREN":
			a.ReturnChildren = true
		case "SPECIAL-USE":
			a.ReturnSpecialUse = true
		case "STATUS":
			d.space()
			a.ReturnStatus = d.statusItems()
		default:
			d.fail("the return option %s is not known", name)
		}
	})
	return a
}

// statusNames are the items of STATUS.
var statusNames = map[string]bool{
	"MESSAGES": true, "RECENT": true, "UIDNEXT": true, "UIDVALIDITY": true, "UNSEEN": true, "DELETED": true, "SIZE": true, "HIGHESTMODSEQ": true,
	"APPENDLIMIT": true, "MAILBOXID": true, "DELETED-STORAGE": true,
}

func (d *decoder) statusItems() (items []string) {
	items = []string{}
	d.list(func() {
		name := d.keyword()
		if d.ok() && !statusNames[name] {
			d.fail("the status item %s is not known", name)
		}
		items = append(items, name)
	})
	return items
}

func (d *decoder) status() any {
	a := &Status{Mailbox: d.mailbox()}
	d.space()
	a.Items = d.statusItems()
	if d.ok() && len(a.Items) == 0 {
		d.fail("a status item is missing")
	}
	return a
}

const maxAppend = 100 // messages of one APPEND

func (d *decoder) appendArgs() any {
	a := &Append{Mailbox: d.mailbox()}
	for d.ok() && d.more() {
		var m AppendMessage
		if d.peek() == '(' {
			m.Flags = d.flags()
			d.space()
		}
		if d.peek() == '"' {
			m.Date = d.dateTime()
			d.space()
		}
		if word := len("UTF8 ("); len(d.b)-d.i > word && strings.EqualFold(string(d.b[d.i:d.i+word]), "UTF8 (") { // RFC 6855, section 4
			d.i += word
			m.Data, m.Binary = d.literal(true)
			d.need(')')
		} else {
			if d.peek() != '{' && d.peek() != '~' {
				d.fail("a message must be a literal")
			}
			m.Data, m.Binary = d.literal(true)
		}
		if len(a.Messages) == maxAppend {
			d.fail("more than %d messages", maxAppend)
		}
		a.Messages = append(a.Messages, m)
	}
	if d.ok() && len(a.Messages) == 0 {
		d.fail("the message is missing")
	}
	return a
}
