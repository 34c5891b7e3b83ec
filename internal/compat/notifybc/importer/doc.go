// Package importer takes over the records of a NotifyBC installation: it has the route POST /import/{collection}, to which the command
// fanfare import notifybc sends the documents of an export.
//
// # State and failure
//
// The package keeps nothing. A document whose id exists is left alone, whatever has become of the record since, so that a second import
// changes nothing and never brings back a subscription that its owner has ended. Each document has its own result; the others of a request
// are stored nevertheless. A request that fails as a whole can be sent again.
package importer
