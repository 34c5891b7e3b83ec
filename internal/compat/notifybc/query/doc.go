// Package query reads the parameters filter and where of the NotifyBC API, and applies them to
// records.
//
// [Parse] accepts both forms of the parameters, URL-encoded JSON and brackets, and compiles the
// parts of MongoDB's query language that clients of NotifyBC use: comparisons, $in, $exists,
// $regex, $text, the logical operators, dotted paths. Anything else is an [Error] that names the
// part, which the API answers with 400. Regular expressions are those of RE2, which take linear
// time; JavaScript's backreferences and assertions are refused.
//
// # State and failure
//
// A [Query] belongs to one request and is not safe for concurrent use. Query.Match counts steps: a
// query that exceeds its budget matches nothing more, and Query.Err reports it. The caller
// selects candidates by [Paths], the part of the condition that a store can look up, lets Match decide,
// and cuts out the page that the client asked for with Query.Page.
//
// Records are decoded JSON. Values are cast to the types of known fields, so that a text is compared
// with a date field as a date. Text search ignores case and accents and has no word stems.
package query
