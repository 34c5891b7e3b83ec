// Package view keeps the messages of mailboxes that IMAP sessions have selected.
//
// State. A Cache has one Snapshot of each selected mailbox, which all its sessions share: the messages in the order of their UIDs, without contents.
// A snapshot never changes. When the account has changed, the next call of Latest reads the changes and makes a new snapshot. A mailbox leaves
// the cache with its last session.
//
// Failure. Latest returns the error of the store and keeps the last snapshot; the next call tries again. It fails with mailbox.ErrNoMailbox after
// the mailbox was removed.
package view
