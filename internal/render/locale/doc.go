// Package locale writes dates, numbers and amounts of money in the way of a language and
// region, and knows the plural forms of numbers. The localized filters of templates use it.
//
// State: a [Locale] is read-only and safe for concurrent use. The data are those of the Unicode
// CLDR 48.2, stored as text in the folder cldr. To add a language, add its tag to generate.mjs
// there and run it; LICENSE is that of the data. Find parses the data on every call, so callers
// keep a Locale that they use often.
//
// Failure: none. An unknown tag is shortened until it is known (RFC 4647, section 3.4); the
// last resort is English. The Gregorian calendar is the only one.
package locale
