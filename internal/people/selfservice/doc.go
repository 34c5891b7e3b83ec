// Package selfservice lets recipients help themselves: they sign up and confirm, change their
// preferences and their address, unsubscribe and take that back. The HTTP handlers of the pages
// call it; the registry stores the results.
//
// State. None. A sealed link carries everything that a page needs, so that nothing is stored of
// a sign-up that nobody confirms.
//
// Failure. Foreign links get one error that does not say what is wrong with them. Expired links
// show a page that offers a new one. Answers never tell whether an address is known.
package selfservice
