package mailbox

import (
	"errors"
	"time"

	"fanfare.dev/fanfare"
)

// An AccountID is the number of an account: the row of its subscriber.
type AccountID = fanfare.RowID

// A MailboxID is the number of a mailbox, unique in its account and never used again.
type MailboxID uint32

// An EmailID is the number of a message, unique in its account and never used again. It stays when the message is moved.
type EmailID int64

// A UID is the number of a message in its mailbox (RFC 9051, section 2.3.1.1), from 1.
type UID uint32

// A ModSeq is the number of a change in an account. It never decreases (RFC 7162), and is the state of JMAP (RFC 8620, section 5.1).
type ModSeq int64

// A ThreadID is the EmailID of the first message of a thread.
type ThreadID = EmailID

// A ContentID is the number of stored bytes.
type ContentID int64

// The named errors. They are in the chain of an error that a method returns.
var (
	ErrNoAccount  = errors.New("the account does not exist")
	ErrNoMailbox  = errors.New("the mailbox does not exist")
	ErrExists     = errors.New("the mailbox exists already")
	ErrHasChild   = errors.New("the mailbox has mailboxes in it")
	ErrNotEmpty   = errors.New("the mailbox has messages in it")
	ErrOverQuota  = errors.New("the quota of the account is exceeded")
	ErrTooLarge   = errors.New("the message is larger than the limit")
	ErrTooMany    = errors.New("the account has as many mailboxes as it may have")
	ErrBadName    = errors.New("the name of the mailbox is not permitted")
	ErrNoMessage  = errors.New("the message does not exist")
	ErrFixed      = errors.New("the mailbox cannot be changed in this way")
	ErrOldModSeq  = errors.New("the log of changes does not reach back so far")
	ErrBadKeyword = errors.New("the keyword is not permitted")
)

// An Owner says whose account it is.
type Owner struct {
	ID      AccountID
	Service string
	Address string // mail address in its normal form; the login name
}

// An Account is what is known of an account besides its mailboxes.
type Account struct {
	Owner
	CreatedAt time.Time
	State     ModSeq // of the last change
	Oldest    ModSeq // removals up to this number may be missing in the log
	Quota     Quota
	Disabled  bool // nobody can log in, and nothing is delivered to it
}

// A Quota has the limits and the use of an account. Messages of broadcasts do not count.
type Quota struct {
	MaxBytes, Bytes       int64 // MaxBytes 0: no limit
	MaxMessages, Messages int64 // MaxMessages 0: no limit
}

// A Role is the use of a mailbox (RFC 6154, RFC 8621 section 2).
type Role string

// The roles. An account has at most one mailbox of each.
const (
	NoRole  Role = ""
	Inbox   Role = "inbox"
	Drafts  Role = "drafts"
	Sent    Role = "sent"
	Trash   Role = "trash"
	Junk    Role = "junk"
	Archive Role = "archive"
)

// InboxID is the MailboxID of the inbox of every account.
const InboxID MailboxID = 1

// Separator is the character between the names of a mailbox and its parents in IMAP. A name does not contain it.
const Separator = '/'

// A Mailbox is a mailbox with its counts.
type Mailbox struct {
	ID          MailboxID
	Parent      MailboxID // 0: none
	Name        string    // without the names of its parents, UTF-8 in NFC
	Role        Role
	SortOrder   uint32
	Subscribed  bool
	UIDValidity uint32
	UIDNext     UID
	RecentFrom  UID // messages from here on are new to every session (IMAP4rev1)
	Messages    int64
	Unseen      int64
	Deleted     int64 // messages with the flag Deleted
	Bytes       int64
	HighestMod  ModSeq // of the mailbox's messages, removed ones too
	Created     ModSeq
	Changed     ModSeq // of the last change that JMAP shows: of a property, or of the counts
	Edited      ModSeq // of the last change of a property
}

// Flags are the system flags of a message.
type Flags uint8

// The flags (RFC 9051, section 2.3.2).
const (
	Seen Flags = 1 << iota
	Answered
	Flagged
	Deleted
	Draft
)

// Names returns the names of the flags, in lower case and without a backslash.
func (f Flags) Names() []string {
	names := []string{}
	for i, name := range [...]string{"seen", "answered", "flagged", "deleted", "draft"} {
		if f&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	return names
}

// A Message is a message in a mailbox, without its content.
type Message struct {
	Email    EmailID
	Mailbox  MailboxID
	UID      UID
	ModSeq   ModSeq // of the last change
	Created  ModSeq
	Flags    Flags
	Keywords string    // sorted, separated by spaces; upper and lower case as first written
	Size     int64     // bytes, RFC822.SIZE
	Received time.Time // INTERNALDATE, in seconds
	Saved    time.Time // when the message came to its mailbox, in seconds (RFC 8514)
	Thread   ThreadID
	Content  ContentID
}

// Removed says that a message left a mailbox.
type Removed struct {
	Mailbox   MailboxID
	UID       UID
	Email     EmailID
	Thread    ThreadID
	Created   ModSeq // of the message
	ModSeq    ModSeq // of the removal
	Destroyed bool   // the message does not exist any more; else it was moved
}

// Changes are the changes of an account after a ModSeq.
type Changes struct {
	State            ModSeq    // of the account, or of the mailbox if one was asked for
	Messages         []Message // created or changed after it, in the order of (mailbox, UID)
	Removed          []Removed // in the order of (mailbox, UID)
	Mailboxes        []Mailbox // created or changed after it
	RemovedMailboxes []RemovedMailbox
}

// A RemovedMailbox says that a mailbox was removed.
type RemovedMailbox struct {
	ID     MailboxID
	ModSeq ModSeq
}

// A NewMailbox is a mailbox that does not exist yet.
type NewMailbox struct {
	Parent     MailboxID
	Name       string
	Role       Role
	SortOrder  uint32
	Subscribed *bool // nil: it is subscribed if its name already is
}

// A MailboxChange has the properties to change; nil leaves a property as it is.
type MailboxChange struct {
	ID         MailboxID
	Parent     *MailboxID
	Name       *string
	Role       *Role
	SortOrder  *uint32
	Subscribed *bool
	KeepNames  bool // if the name changes, subscriptions stay with the old names, as in IMAP, and do not move with the mailboxes
}

// A MailboxRemoval says which mailbox to remove, and how.
type MailboxRemoval struct {
	ID           MailboxID
	WithMessages bool // otherwise, it must be empty
	KeepName     bool // a subscription stays with the name, as in IMAP
}

// A NewMessage is a message that does not exist yet.
type NewMessage struct {
	Mailbox  MailboxID
	Content  []byte    // the message with CR LF line ends; or nil
	Upload   ContentID // instead of Content: bytes that Upload stored
	Flags    Flags
	Keywords []string
	Received time.Time // the zero time: now
}

// FlagMode says how a FlagChange changes flags.
type FlagMode uint8

// The modes.
const (
	SetFlags FlagMode = iota
	AddFlags
	RemoveFlags
)

// A FlagChange changes the flags of messages.
type FlagChange struct {
	Emails         []EmailID
	Mode           FlagMode
	Flags          Flags
	Keywords       []string
	UnchangedSince *ModSeq // messages that were changed after it stay as they are, and are returned as modified (RFC 7162, section 3.1.3)
}

// A Delivery is a message for the inboxes of several accounts.
type Delivery struct {
	Content  []byte
	Received time.Time
	To       []Owner // the account of an owner is created if it does not exist
	Existing bool    // instead, an account that does not exist fails with ErrNoAccount: it was removed since the owner was looked up
}
