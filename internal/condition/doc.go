// Package match answers which subscriptions want an event: an index of
// conditions in memory, exact, incremental and without I/O.
//
// # State and failure
//
// The index holds nothing that the store does not: it is filled at start and
// follows every change. A change is refused whole or takes effect whole, and a
// match that begins after Add or Remove has returned sees it. Matches of a topic
// run beside each other; a change shuts them out for the moment in which it
// shows, one of many subscriptions for a few of them at a time, and never while it
// compiles. No condition can make a match fail.
//
// # Conditions
//
// A condition is CEL. The event's data are event, and where the topic has a
// schema its top-level fields may be written bare (title for event.title),
// except those that CEL or Fanfare uses for something else (type, int, sub, and
// so on). A rule of the topic names the params of each subscription as sub
// (event.mag >= sub.min_mag); one of the type strings is a list, so that any of
// several values, or all of them, can be asked for (event.place in sub.places).
// Beside CEL's standard functions and macros there
// are contains_ci(text, part) and starts_with_ci(text, part), which fold case as
// fold tells and are false where either is empty, and geo.within(lat, lon, lat, lon, km),
// an error where a place or a distance is none (geo.go).
//
// In a topic with a key, crosses(value, level) compares a number of the event, or
// what arithmetic makes of some, with the same of the last event of its key, which
// the caller brings along: it is true where the value has reached or passed the
// level since, crosses_above and crosses_below in one direction. Without an earlier
// event, or a number in it, it is false.
//
// The attributes of the event are ce (ce.source, ce.time, a timestamp, ce.tenant): a
// field of that name is written event.ce.
//
// A condition matches if it is true. CEL decides what that is:
//
//   - A field that is missing, or a comparison or function of the wrong types,
//     is an error, and an error is no match. || and && follow CEL: error || true
//     is true, error && false is false, in either order.
//   - null is a value: event.x == null is true where x is null, event.x != 'a'
//     too; event.x > 1 is an error. has(event.x) is true for a null.
//   - Numbers are equal and ordered by value, 5 as well as 5.0. Two integers
//     compare exactly; an integer meets a double as a double, so that above
//     2^53 neighbours are equal. -0 is 0; a number beyond the doubles is infinite.
//   - A number of the event is a double where the schema says number, an integer
//     where it says integer, else as it is written. Params are doubles.
//   - Text compares by code point. Invalid UTF-8 in an event reads as U+FFFD.
//
// What the schema shows to be a mistake is refused when the condition is made,
// with line and column: a field that it lacks (unless it allows additional
// ones), a string compared with a number, a sum of an integer and a double.
// Text has at most [MaxTextBytes] bytes and 64 levels; an evaluation by cel-go
// that takes more than 20,000 of its cost units is an error.
//
// # How it is answered
//
// The checked expression becomes a tree of tests (ir.go) in three-valued logic;
// what they do not know, such as macros and arithmetic, stays a CEL program, as
// small a part of the expression as can be. What an event's field holds, its
// folded text, and what an expression makes of the event alone (computed.go), is found
// once per event, and leads to rows. Of an event's data only the members that
// conditions name are read (scan.go), unless one asks for the whole.
//
// Filters are interned by text: each distinct one is answered once per event and
// has its subscriptions in a bitmap. Those that differ in literals alone have one
// form (form.go): it is compiled once, a filter is a row of it with its literals
// as params, and it is answered as a rule is. A filter a && b && c of a kind that few
// others have is a compound of rows of such forms (term.go): the one or two of its
// conjuncts that it shares with the fewest others lead to it (guards.go).
//
// A rule is compiled into ways to the rows that may match (plan.go, way.go): its
// equalities lead to a bucket, or else the texts that occur in the event's to theirs
// (needles.go), or the texts that event and row may have in common (probe.go), and
// the range, or what a value crossed (cross_way.go), to a run of rows in it
// (bucket.go). Ranges with two sides and the surroundings of places lead to cells
// (cells.go). Only these are tested for the rest,
// once per distinct text where it hangs on one. Where there are several ways, as
// with an || or several lists, a row is on those that it shares with the fewest
// others. What leads nowhere, such as a != alone, is evaluated for every event. What
// a hit tells about a subscription lies in columns by place (columns.go), ten bytes
// each.
package condition
