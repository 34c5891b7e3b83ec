package mailbox

import (
	"time"

	"fanfare.dev/fanfare/internal/store"
)

// mailboxOf reads a row of the statements mailboxes and mailbox.
func mailboxOf(r store.Row) Mailbox {
	return Mailbox{ID: MailboxID(r.Int64(0)), Parent: MailboxID(r.Int64(1)), Name: r.Text(2), Role: Role(r.Text(3)), SortOrder: uint32(r.Int64(4)),
		Subscribed: r.Int64(5) != 0, UIDValidity: uint32(r.Int64(6)), UIDNext: UID(r.Int64(7)), RecentFrom: UID(r.Int64(8)),
		Messages: r.Int64(9), Unseen: r.Int64(10), Deleted: r.Int64(11), Bytes: r.Int64(12),
		HighestMod: ModSeq(r.Int64(13)), Created: ModSeq(r.Int64(14)), Changed: ModSeq(r.Int64(15)), Edited: ModSeq(r.Int64(16))}
}

// bindMailbox binds the columns of mailbox_put.
func bindMailbox(to store.Values, id AccountID, m *Mailbox) {
	to.Int64(int64(id))
	to.Int64(int64(m.ID))
	to.Int64(int64(m.Parent))
	to.Text(m.Name)
	to.Text(string(m.Role))
	to.Int64(int64(m.SortOrder))
	to.Int64(bit(m.Subscribed))
	to.Int64(int64(m.UIDValidity))
	to.Int64(int64(m.UIDNext))
	to.Int64(int64(m.RecentFrom))
	to.Int64(m.Messages)
	to.Int64(m.Unseen)
	to.Int64(m.Deleted)
	to.Int64(m.Bytes)
	to.Int64(int64(m.HighestMod))
	to.Int64(int64(m.Created))
	to.Int64(int64(m.Changed))
	to.Int64(int64(m.Edited))
}

// bindAccount binds the columns of account_insert and account_put.
func bindAccount(to store.Values, a *account) {
	to.Int64(int64(a.ID))
	to.Text(a.Service)
	to.Text(a.Address)
	to.Int64(a.CreatedAt.Unix())
	to.Int64(int64(a.State))
	to.Int64(int64(a.Oldest))
	to.Int64(a.Quota.MaxBytes)
	to.Int64(a.Quota.Bytes)
	to.Int64(a.Quota.MaxMessages)
	to.Int64(a.Quota.Messages)
	to.Int64(int64(a.nextMailbox))
	to.Int64(int64(a.nextEmail))
	to.Int64(int64(a.validity))
	to.Int64(a.merged)
	to.Int64(bit(a.Disabled) * flagDisabled)
}

// messageOf reads a row of the statements of messages.
func messageOf(r store.Row) Message {
	return Message{Email: EmailID(r.Int64(0)), Mailbox: MailboxID(r.Int64(1)), UID: UID(r.Int64(2)), ModSeq: ModSeq(r.Int64(3)), Created: ModSeq(r.Int64(4)),
		Flags: Flags(r.Int64(5)), Size: r.Int64(6), Received: time.Unix(r.Int64(7), 0).UTC(), Saved: time.Unix(r.Int64(8), 0).UTC(),
		Thread: ThreadID(r.Int64(9)), Content: ContentID(r.Int64(10)), Keywords: r.Text(11)}
}

// bindMessage binds the columns of message_insert.
func bindMessage(to store.Values, m *addedMessage) {
	to.Int64(int64(m.account))
	to.Int64(int64(m.Email))
	to.Int64(int64(m.Mailbox))
	to.Int64(int64(m.UID))
	to.Int64(int64(m.ModSeq))
	to.Int64(int64(m.Created))
	to.Int64(int64(m.Flags))
	to.Int64(m.Size)
	to.Int64(m.Received.Unix())
	to.Int64(m.Saved.Unix())
	to.Int64(int64(m.Thread))
	to.Int64(int64(m.Content))
	to.Text(m.Keywords)
}

func bit(b bool) int64 {
	if b {
		return 1
	}
	return 0
}
