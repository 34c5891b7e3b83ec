// Package selfservice implements the recipient pages: recipients sign up and confirm, change their
// preferences and their address, unsubscribe and undo that. The HTTP handlers of the pages
// call it; the registry stores the results.
//
// State. None. A sealed link contains everything that a page needs, so that nothing is stored
// for a sign-up that is never confirmed.
//
// Failure. All links from elsewhere get the same error, which does not reveal what is wrong with
// them. Expired links show a page that offers a new one. Responses never reveal whether an address
// is known.
package selfservice
