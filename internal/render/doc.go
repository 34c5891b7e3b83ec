// Package render turns an event, a subscriber and the subscriptions that matched into a
// message: the bytes of a mail (RFC 5322), or a JSON document for a webhook. Package
// compose prepares the batches, packages dispatch and preview write the messages.
//
//	template.go   compiles a template; variants.go, files.go and localize.go its forms
//	check.go      compares a template with the schema of a topic; dryrun.go tries it
//	rendering.go  renders the shared text of a batch once, and the personal text of each recipient
//	mail.go       writes mails; multicast.go those with several recipients
//	webhook.go    writes JSON documents
//	digest.go     has the items of a digest
//
// Package liquid compiles the parts of a template, bodies generates HTML and text from what
// the author wrote, mime encodes headers and bodies, locale writes dates and numbers.
//
// State: a [Template] is compiled once and safe for concurrent use. A [MailBatch] or a
// [WebhookBatch] is the same for all recipients; its writer holds everything that does not
// change from one recipient to the next (decoded event, rendered and encoded text, header
// lines) and belongs to one goroutine. The package does no I/O.
//
// Failure: an error is a *fanfare.Error with the code Invalid that names the template and
// the line, the variable, or the header value. After a failed recipient the writer can
// write to the next one. No byte of a value can end a header line or a boundary early.
//
// # Templates
//
// Templates are Liquid with these variables:
//
//	event            the event's data: {{ event.title }}
//	meta             id, source, type, subject, time (RFC 3339), topic, service, extensions
//	subscriber       id, address, locale, time_zone, attributes
//	subscription     the first that matched: id, rule, params, data
//	subscriptions    all that matched
//	sub              of a direct send: the recipient's own data; there are no subscriptions then
//	preferences_url  the signed link to the recipient's preferences
//	unsubscribe_url  the signed link to unsubscribe
//
// Both links are empty if the server has no public_url. A [Digest] has items, count, more
// and digest instead of event, meta and sub.
//
// In HTML every output is escaped, except {{ x | raw }}. Text and subject are not escaped.
// Control characters never reach a message.
//
// The names of variables, tags and filters are checked when the template is compiled, and
// the fields of event against the topic's schema by [Template.Check]: an unknown name is an
// error with line, column and a suggestion. A known variable that one event or recipient
// lacks is empty. Without a schema a missing variable is reported to OnMissing, or refused
// with RefuseMissing. It is neither in the conditions of if, unless and case nor
// directly before the filter default. [Template.DryRun] renders a template for every kind
// of recipient and event that can occur.
//
// Localized filters ({{ event.when | date: "long" }}) write in the language of the template
// and in the time zone of the recipient. A batch has a writer for each combination that
// occurs. A template may have variants for languages and devices ([Variant]), each of which
// is compiled as a template. A template in the syntax of GOV.UK Notify is first converted
// to Liquid.
//
// Three details differ from other implementations of Liquid: {%- and -%} trim the
// neighbouring text and never a value; render inserts partials when the template is
// compiled, and include does not exist; a lone { or % is text, but an unclosed {{ or {% is
// an error.
package render
