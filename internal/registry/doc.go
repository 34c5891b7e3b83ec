// Package registry holds what people configure and subscribe to: services,
// topics with their rules, templates, channels, subscribers, subscriptions,
// keys and switches.
//
// State. Everything is durable in the control store (control.db) before the
// call that changed it returns. Held in memory, and rebuilt by Open: the
// configuration (small), the distinct filter texts, one bit for each
// subscription (is it active), and two hash tables that find a subscriber by
// address and a subscription by identity. A row itself is read from the store
// when it is needed. The match index is filled from here and from nowhere else.
//
// Order. One goroutine writes. It gathers the changes that wait (at most
// maxGroup), decides on each against the state before it, commits them in one
// transaction, then updates match index, tables and live bits, and only then
// answers. So whoever has an answer knows that every event accepted from now on
// sees the change, and whoever has none knows nothing.
//
// Failure. A commit that fails leaves memory and store as they were: all callers
// of that group get the error (fanfare.DiskFull when the disk is full, else
// fanfare.Unavailable), and the next group is tried afresh. Places taken by the
// failed group are not handed out again while the process runs.
//
// Subscribers are found or made by address: an address belongs to one
// subscriber per service and kind ("mail" for the drivers smtp and file). A
// subscriber whose client chose no id is called per- and its place in hex.
package registry
