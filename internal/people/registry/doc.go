// Package registry holds what people configure and subscribe to: services,
// topics with their rules, templates, channels, subscribers, subscriptions,
// keys and switches.
//
// State. Everything is durable in the control store (control.db) before the
// call that changed it returns. Held in memory, and rebuilt by Open: the
// configuration (small), the distinct filter texts, one bit for each
// subscription (is it active, neither ended nor paused), hash tables that find a subscriber by address or
// id and a subscription by identity, and for each subscription the one before it
// of the same subscriber (belongings). A row itself is read from the store when
// it is needed. The match index is filled from here and from nowhere else.
//
// Order. One goroutine decides on changes. It gathers those that wait (at most
// maxGroup) and decides on each against the state before it; another commits the
// group in one transaction, then updates live bits and match index, and only then
// answers. So whoever has an answer knows that every event accepted from now on
// sees the change, and whoever has none knows nothing. While a group is being
// committed the next may be decided on, as if it had landed, and what comes
// meanwhile goes along with it. A change of a
// subscriber that fails halfway is taken back with its group, which is decided on
// anew without it. Changes of the configuration, merges and erasures have
// transactions of their own.
//
// Audit. Who asks for a change travels with the context (As). A change that has
// an actor commits with a line of the audit; what is changed elsewhere is noted
// with Record. Lines are never changed, and removed by age.
//
// Failure. A commit that fails leaves memory and store as they were: all callers
// of that group get the error (fanfare.DiskFull when the disk is full, else
// fanfare.Unavailable), a group that was decided on top of it is decided on anew,
// and the next commit is tried afresh. Places taken by the failed group are not
// handed out again while the process runs.
//
// Queues. maxQueue calls may wait for the writer; more block until there is room
// or their context ends. A filter's text stays known (and in memory, once for all
// that share it) after its last subscription has ended.
//
// Subscribers are found or made by address: an address belongs to one
// subscriber per service and kind ("mail" for the drivers smtp and file). A
// subscriber whose client chose no id is called per- and its place in hex.
package registry
