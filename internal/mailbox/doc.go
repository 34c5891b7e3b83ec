// Package mailbox stores mailboxes. IMAP, JMAP, LMTP, the channel driver inbox and the administration read and change them
// through the one type Store.
//
// State. An account belongs to a subscriber and has the number of the subscriber's row. It has mailboxes in a tree, and each
// message is in exactly one of them. A message has three numbers: its EmailID, which stays when the message is moved; its UID,
// which is new in each mailbox (RFC 9051, section 2.3.1.1); and the ModSeq of its last change (RFC 7162). Each transaction that
// changes an account takes the next ModSeq of the account, so that one number is the state of all protocols: IMAP's
// HIGHESTMODSEQ and the state strings of JMAP. Removed messages leave (mailbox, UID, EmailID, ModSeq) in a log, up to a bound.
// Contents are stored once for all messages with the same bytes, and never change.
//
// Failure. A method that changes something returns when the change is durable as store.Durability says, or changes nothing.
// Changes of several callers share a transaction, so that a hundred deliveries cost one sync. Errors that a user can meet are
// *fanfare.Error; ErrOverQuota, ErrNoMailbox and the other named errors are in their chain, so that a protocol can choose its code.
package mailbox
