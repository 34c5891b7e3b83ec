// Package render turns an event, a subscriber and the subscriptions that matched
// into the bytes of an RFC 5322 message.
//
// State: a [Template] is compiled once and safe for concurrent use. A [Mailing]
// is what all recipients of a batch share; its [Writer] holds everything that
// does not change from one recipient to the next (decoded event, rendered and
// encoded text, header lines) and belongs to one goroutine. Nothing is kept
// beyond that, and nothing here does I/O.
//
// Failure: every error is a *fanfare.Error with the code Invalid that names the
// template and line, the variable, or the header value that was wrong. A failed
// recipient leaves the Writer usable for the next one. No byte of any value can
// end a header line or a boundary early.
//
// # Templates
//
// Templates are Liquid. They see
//
//	event            the event's data: {{ event.title }}
//	meta             id, source, type, subject, time (RFC 3339), topic, service, extensions
//	subscriber       id, address, locale, time_zone, attributes
//	subscription     the first that matched: id, rule, params, data
//	subscriptions    all that matched, each of the same shape
//	sub              of a direct send: the recipient's own data (subscriptions is empty then)
//	preferences_url  the signed link to what the recipient gets, empty as well
//	unsubscribe_url  the signed link, empty where the server has no public_url
//
// Those of a [Digest], which tells of several events, see items, count, more and
// digest instead of event, meta and sub.
//
// In HTML every output is escaped; {{ x | raw }} opts out. Text and subject are
// not escaped. Control characters never reach a message.
//
// The names of variables, tags and filters are checked when the template is
// compiled, the fields of event against the topic's schema by [Template.Check]: an
// unknown name is an error there, with line, column and a suggestion. A variable that
// exists and that this event or recipient lacks is empty, as a null is, also in
// filters, loops and comparisons. Where no schema says what there is, what was not
// there is told to [Mailing].Absent, or refused with Complete; two places ask for what
// may be missing and are not told: the conditions of if, unless, case, and the value
// directly before the filter default. [Template.DryRun] renders a template for every
// kind of recipient and event that can occur.
//
// Filters that speak ({{ event.when | date: "long" }}) write in the voice of the
// message: the language of the template and the clock of the recipient. A template
// that has them is prepared once for each voice of a batch.
//
// A template may say something else in other languages and on devices ([Variant]);
// each of these is compiled as a template of its own, and a batch has a writer for
// each that somebody in it reads. A template in the syntax of GOV.UK Notify becomes
// Liquid before anything else is done.
//
// Three things differ from other Liquids: {%- and -%} trim the text beside them
// and never a value, render is put in when the template is compiled and include does
// not exist, and a lone { or % needs no
// care but an unclosed {{ or {% is an error.
package render
