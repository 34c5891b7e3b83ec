// Package notifytext writes texts as GOV.UK Notify does: ((name)) and ((flag??text)) with the
// values of a person, its dialect of Markdown as HTML and as plain text, text messages in the
// GSM alphabet, and values without markup.
//
// All functions are pure: they keep nothing but templates that are compiled once. Templates with
// `syntax: notify` and the API for clients of Notify call them, so that the content that the API
// answers with and the mail that is sent agree.
package notifytext
