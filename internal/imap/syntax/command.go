package syntax

import "time"

// A Command is one command of a client.
type Command struct {
	Tag  string
	Name string // in upper case, without the prefix UID
	UID  bool   // the command had the prefix UID
	Args any    // one of the types below; nil without arguments
}

// FullName returns the name of the command with its prefix.
func (c *Command) FullName() string {
	if c.UID {
		return "UID " + c.Name
	}
	return c.Name
}

// An Error says why a command cannot be read. The server answers BAD with it.
type Error struct {
	Tag  string // "" if the command has no valid tag
	Name string // of the command; "" if it is unknown
	Text string
}

// Error returns the text.
func (e *Error) Error() string { return e.Text }

// The arguments of the commands. The names of mailboxes are as the client sent them: see DecodeMailbox.
type (
	// Login are the arguments of LOGIN.
	Login struct{ User, Password string }

	// Authenticate are the arguments of AUTHENTICATE. Initial is the decoded initial response (RFC 4959); nil: none.
	Authenticate struct {
		Mechanism string
		Initial   []byte
	}

	// Enable are the names of ENABLE in upper case (RFC 5161).
	Enable struct{ Names []string }

	// ID are the names and values of ID (RFC 2971).
	ID struct{ Params [][2]string }

	// Select are the arguments of SELECT and EXAMINE with the parameters of RFC 7162.
	Select struct {
		Mailbox   string
		Condstore bool
		Qresync   *Qresync
	}

	// Qresync is the state of a mailbox that a client knows (RFC 7162, section 3.2.5).
	Qresync struct {
		UIDValidity uint32
		ModSeq      uint64
		Known       NumSet // UIDs; nil: all
		MatchSeqs   NumSet // with MatchUIDs: pairs of sequence numbers and UIDs
		MatchUIDs   NumSet
	}

	// Create are the arguments of CREATE; Use has special uses such as \Sent (RFC 6154).
	Create struct {
		Mailbox string
		Use     []string
	}

	// Mailbox is the argument of DELETE, SUBSCRIBE, UNSUBSCRIBE and GETQUOTAROOT.
	Mailbox struct{ Mailbox string }

	// Rename are the arguments of RENAME.
	Rename struct{ From, To string }

	// List are the arguments of LIST and LSUB (RFC 5258).
	List struct {
		Extended       bool // the command has options or several patterns
		Subscribed     bool // selection options
		Remote         bool
		RecursiveMatch bool
		SpecialUse     bool
		Reference      string
		Patterns       []string

		ReturnSubscribed bool
		ReturnChildren   bool
		ReturnSpecialUse bool
		ReturnStatus     []string // items of STATUS (RFC 5819)
	}

	// Status are the arguments of STATUS; the items are in upper case.
	Status struct {
		Mailbox string
		Items   []string
	}

	// Append are the arguments of APPEND, with several messages by RFC 3502.
	Append struct {
		Mailbox  string
		Messages []AppendMessage
	}

	// AppendMessage is one message of APPEND. Data refers to the bytes of the command.
	AppendMessage struct {
		Flags  []string
		Date   time.Time // zero: not given
		Data   []byte
		Binary bool // literal8
	}

	// QuotaRoot is the argument of GETQUOTA and SETQUOTA.
	QuotaRoot struct{ Root string }

	// Compress is the argument of COMPRESS in upper case.
	Compress struct{ Algorithm string }

	// Set is the argument of UID EXPUNGE.
	Set struct{ Set NumSet }

	// Copy are the arguments of COPY and MOVE.
	Copy struct {
		Set     NumSet
		Mailbox string
	}

	// Store are the arguments of STORE.
	Store struct {
		Set            NumSet
		Mode           byte // '+', '-' or 0: replace
		Silent         bool
		Flags          []string
		UnchangedSince *uint64
	}

	// Fetch are the arguments of FETCH.
	Fetch struct {
		Set          NumSet
		Items        []FetchItem
		ChangedSince *uint64
		Vanished     bool
	}

	// Search are the arguments of SEARCH.
	Search struct {
		Return  bool     // the command has RETURN
		Options []string // MIN, MAX, ALL, COUNT, SAVE
		Charset string   // in upper case; "" if not given
		Key     *Key
	}
)

// The items of FETCH.
const (
	ItemEnvelope      = "ENVELOPE"
	ItemFlags         = "FLAGS"
	ItemInternalDate  = "INTERNALDATE"
	ItemRFC822        = "RFC822"
	ItemRFC822Header  = "RFC822.HEADER"
	ItemRFC822Size    = "RFC822.SIZE"
	ItemRFC822Text    = "RFC822.TEXT"
	ItemBody          = "BODY"
	ItemBodyStructure = "BODYSTRUCTURE"
	ItemUID           = "UID"
	ItemModSeq        = "MODSEQ"
	ItemEmailID       = "EMAILID"
	ItemThreadID      = "THREADID"
	ItemSaveDate      = "SAVEDATE"
	ItemSection       = "BODY[]"
	ItemBinary        = "BINARY[]"
	ItemBinarySize    = "BINARY.SIZE[]"
)

// A FetchItem is one item of FETCH.
type FetchItem struct {
	Kind    string // one of the constants
	Peek    bool   // do not set \Seen
	Section Section
	Partial *Partial
}

// A Section names a part of a message (RFC 9051, section 6.4.5.1).
type Section struct {
	Part   []int
	Of     string   // "", HEADER, HEADER.FIELDS, HEADER.FIELDS.NOT, TEXT or MIME
	Fields []string // of HEADER.FIELDS, as the client sent them
}

// A Partial is a range of bytes.
type Partial struct{ Offset, Length int64 }

// The kinds of search keys.
const (
	KeyAnd      = "AND" // all of Keys
	KeyOr       = "OR"  // one of Keys
	KeyNot      = "NOT"
	KeyAll      = "ALL"
	KeySeq      = "SEQ"
	KeyUID      = "UID"
	KeyFlag     = "FLAG"    // Text is a system flag such as \Seen, or a keyword; Not: not set
	KeyRecent   = "RECENT"  // Not: OLD
	KeyNew      = "NEW"     // recent and unseen
	KeyHeader   = "HEADER"  // Field contains Text
	KeyBody     = "BODY"    // contains Text
	KeyText     = "TEXT"    // contains Text
	KeyLarger   = "LARGER"  // than Number
	KeySmaller  = "SMALLER" // than Number
	KeyBefore   = "BEFORE"  // Date
	KeyOn       = "ON"
	KeySince    = "SINCE"
	KeySent     = "SENT"  // Text is BEFORE, ON or SINCE
	KeySaved    = "SAVED" // Text is BEFORE, ON or SINCE (RFC 8514)
	KeyOlder    = "OLDER" // Number of seconds (RFC 5032)
	KeyYounger  = "YOUNGER"
	KeyModSeq   = "MODSEQ" // at least Number
	KeyEmailID  = "EMAILID"
	KeyThreadID = "THREADID"
)

// A Key is a search key. AND, OR and NOT have keys below them.
type Key struct {
	Kind   string
	Not    bool // of KeyFlag and KeyRecent
	Keys   []*Key
	Set    NumSet
	Field  string
	Text   string
	Number uint64
	Date   time.Time // a day, in UTC
}

// Walk calls visit for the key and all keys below it.
func (k *Key) Walk(visit func(*Key)) {
	visit(k)
	for _, below := range k.Keys {
		below.Walk(visit)
	}
}
