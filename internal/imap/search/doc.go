// Package search decides which messages match the keys of SEARCH (RFC 9051, section 6.4.4). Keys with a text match a substring of the decoded
// text, without regard to case (i;unicode-casemap, RFC 5051).
//
// State. None. A Query reads the content of a message once, and only if a key needs it.
//
// Failure. Match returns the error of Message.Content. A message whose content does not exist any more matches no key that needs it.
package search
