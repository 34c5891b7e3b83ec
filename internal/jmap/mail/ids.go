package mail

import (
	"strconv"
	"strings"

	"fanfare.dev/fanfare/internal/jmap/core"
	"fanfare.dev/fanfare/internal/mailbox"
)

// The prefixes of ids.
const (
	accountPrefix = "a"
	emailPrefix   = "M"
	mailboxPrefix = "B"
	threadPrefix  = "T"
	messagePrefix = "E" // a blob: a message
	uploadPrefix  = "C" // a blob: an upload

	identityPrefix   = "I"
	submissionPrefix = "S"
)

// AccountID returns the id of an account.
func AccountID(id mailbox.AccountID) core.ID {
	return core.ID(accountPrefix + strconv.FormatUint(uint64(id), 10))
}

// ParseAccountID reads the id of an account.
func ParseAccountID(id core.ID) (mailbox.AccountID, bool) {
	n, ok := number(id, accountPrefix)
	return mailbox.AccountID(n), ok && n <= 1<<32-1
}

func emailID(id mailbox.EmailID) core.ID {
	return core.ID(emailPrefix + strconv.FormatInt(int64(id), 10))
}

func mailboxID(id mailbox.MailboxID) core.ID {
	return core.ID(mailboxPrefix + strconv.FormatUint(uint64(id), 10))
}

func threadID(id mailbox.ThreadID) core.ID {
	return core.ID(threadPrefix + strconv.FormatInt(int64(id), 10))
}

func recordID(prefix string, id mailbox.RecordID) core.ID {
	return core.ID(prefix + strconv.FormatInt(int64(id), 10))
}

func parseEmailID(id core.ID) (mailbox.EmailID, bool) {
	n, ok := number(id, emailPrefix)
	return mailbox.EmailID(n), ok
}

func parseThreadID(id core.ID) (mailbox.ThreadID, bool) {
	n, ok := number(id, threadPrefix)
	return mailbox.ThreadID(n), ok
}

func parseMailboxID(id core.ID) (mailbox.MailboxID, bool) {
	n, ok := number(id, mailboxPrefix)
	return mailbox.MailboxID(n), ok && n <= 1<<32-1
}

// number reads the number of an id, which has one spelling.
func number(id core.ID, first string) (int64, bool) {
	digits, ok := strings.CutPrefix(string(id), first)
	if !ok || digits == "" || digits[0] < '1' || digits[0] > '9' {
		return 0, false
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	return n, err == nil
}

// maxBlobDepth limits the messages in messages whose parts have ids.
const maxBlobDepth = 10

// A blob is the place of bytes: a message or an upload, and then the number of a part in it, of a part in that, and so on.
type blob struct {
	email  mailbox.EmailID // or 0
	upload mailbox.ContentID
	parts  []int
}

func (b blob) id() core.ID {
	text := uploadPrefix + strconv.FormatInt(int64(b.upload), 10)
	if b.email != 0 {
		text = messagePrefix + strconv.FormatInt(int64(b.email), 10)
	}
	for _, part := range b.parts {
		text += "-" + strconv.Itoa(part)
	}
	return core.ID(text)
}

// below returns the blob of a part.
func (b blob) below(part int) blob {
	b.parts = append(b.parts[:len(b.parts):len(b.parts)], part)
	return b
}

func parseBlobID(id core.ID) (b blob, ok bool) {
	first, rest, more := strings.Cut(string(id), "-")
	n, isMessage := number(core.ID(first), messagePrefix)
	b.email = mailbox.EmailID(n)
	if !isMessage {
		if n, ok = number(core.ID(first), uploadPrefix); !ok {
			return b, false
		}
		b.upload = mailbox.ContentID(n)
	}
	for more && len(b.parts) < maxBlobDepth {
		var digits string
		digits, rest, more = strings.Cut(rest, "-")
		part, err := strconv.Atoi(digits)
		if err != nil || part < 1 || strconv.Itoa(part) != digits {
			return b, false
		}
		b.parts = append(b.parts, part)
	}
	return b, !more
}
