// Package mail has the methods of JMAP Mail (RFC 8621), Quota (RFC 9425) and Blob/copy for the accounts of the mailbox store.
//
// State. The store has everything. The package caches the list of the messages of recently used accounts, which it brings up to date with
// the store's log of changes before each use, and the headers and searched texts of recently used messages, which never change. All states are the
// ModSeq of the account; the state of an answer with hasMoreChanges also has the last record that it contains.
//
// A message is in exactly one mailbox. A message with the flag \Deleted does not exist in JMAP (RFC 8621, section 4.1.1).
//
// Failure. A method that changes several records changes each of them or says why not; what it says it did is durable. If the log of changes
// does not reach back to a state, /changes fails with cannotCalculateChanges.
//
// The package internal/jmap calls the methods for the account of a login.
package mail
