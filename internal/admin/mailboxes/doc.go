// Package mailboxes lets operators manage the mailboxes of subscribers: create, list, change, remove, export and import them. The API calls it.
//
// State. None; the accounts are in the store of package mailbox, and the subscribers in the registry.
//
// Failure. Each change is durable on return. An export that fails ends early with the error; an import that fails says how many messages it stored.
package mailboxes
