// Package header reads the values of header fields in the forms of JMAP (RFC 8621, section 4.1.2): raw, text, addresses, message ids, dates
// and URLs.
//
// State. None.
//
// Failure. Addresses and texts are read as well as possible, so that broken messages can be shown. A list of message ids or URLs, and a date,
// that cannot be read is absent. The time is linear in the length of a value, and the number of addresses is limited.
package header
