// Package locale writes dates, numbers and amounts of money as people of a language
// and region write them, and knows which plural form a number takes.
//
// State: a [Locale] is read-only after [Find] made it, and safe for concurrent use.
// What languages say is the Unicode CLDR 48.2, kept as text in the folder cldr
// (generate.mjs there writes it anew; LICENSE is that of the data). Nothing is kept
// beside it: who needs a Locale often keeps it.
//
// Failure: none. A tag that is not known is shortened until one is (RFC 4647, section
// 3.4), and in the end is English. The Gregorian calendar is the only one.
package locale
