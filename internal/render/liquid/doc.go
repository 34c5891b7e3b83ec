// Package liquid compiles the parts of a template (subject, text, HTML, JSON), which are
// written in Liquid, and renders them. Package render makes messages of them.
//
// It wraps a Liquid library. The source of a part passes these steps, one file each:
//
//	notify.go      turns the syntax of GOV.UK Notify into Liquid
//	split.go       cuts the source into nodes: text, outputs, tags and blocks
//	expression.go  rewrites each expression, so that missing values are noticed
//	scope.go       finds where the variables come from and refuses unknown ones
//	slots.go       finds out for whom a node is the same; personal ones become slots
//	part.go        hands the result to the library, and renders it
//
// Filters are in filters.go, those that depend on language and time zone in
// localized.go. limits.go bounds what one part may use of time and memory. value.go turns
// values into text, escaped as the part needs.
//
// State: a [Part] never changes. A [Usage] counts for one part of one message.
//
// Failure: errors are *fanfare.Error with a line; the caller adds the pointer of the part.
// No value can end an HTML element or a string of JSON early.
package liquid
