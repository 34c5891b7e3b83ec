// Package registry stores subscribers, subscriptions, consents, suppressions and erasures. It also
// writes the configuration of package catalog/state, because all changes share one writer.
//
// State. A change is durable in the control store before its call returns. Open rebuilds the
// memory: the configuration, the distinct filter texts, one bit for each subscription (whether it
// is active), hash indexes that find a subscriber by address or id and a subscription by identity,
// and the subscriptions of each subscriber. Rows are read from the store when they are needed.
// Only this package fills the match index.
//
// Order. One goroutine decides on changes. It collects the waiting jobs into a group of at most
// maxGroupChanges and decides on each job against the state after the jobs before it. A second
// goroutine commits the group in one transaction, then updates the active bits and the match
// index, and only then answers. After an answer, every event that is accepted sees the change.
// While a group is being committed, the writer decides on the next group as if the commit had
// succeeded, and adds arriving jobs to it. If a change of a subscriber fails halfway, its group is
// undone and decided again without it. Changes of the configuration, merges and erasures have
// transactions of their own.
//
// Audit. The actor of a change travels in the context (audit.WithActor). A change with an actor
// commits together with an audit entry. Record adds entries about other actions. Entries do not
// change, except that an erasure renames the ids in them; old entries are deleted.
//
// Failure. A failed commit leaves memory and store as they were. All callers of the group get the
// error: fanfare.DiskFull if the disk is full, otherwise fanfare.Unavailable. A group that was
// decided on top of it is decided again. The row ids of the failed group are not reused while the process
// runs.
//
// Queues. At most maxQueuedJobs calls wait for the writer. Further calls block until the queue has
// space or their context ends. The text of a filter stays in memory, once for all subscriptions
// that share it, after its last subscription has ended.
//
// An address belongs to one subscriber for each service and kind (mail for the drivers smtp and
// file). A subscriber without a client's id has the id "per-" and its row id in hexadecimal.
package registry
