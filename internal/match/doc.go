// Package match answers which subscriptions want an event: an index of
// conditions in memory, exact, incremental and without I/O.
//
// # State and failure
//
// The index holds nothing that the store does not: it is filled at start and
// follows every change. A change is refused whole or takes effect whole, and a
// match that begins after Add or Remove has returned sees it. Matches of a topic
// run beside each other; a change shuts them out for the moment in which it
// shows, never while it compiles. No condition can make a match fail.
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
// fold tells and are false where either is empty.
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
// small a part of the expression as can be. What an event's field holds, and
// its folded text, is found once per event.
//
// Filters are interned by text: each distinct one is evaluated once per event
// and has its subscriptions in a bitmap. A rule is compiled into equalities,
// one range and a rest (plan.go): equalities lead to a bucket, the range to a
// run of rows in it (bucket.go), and only these are tested for the rest, once
// per distinct text where it hangs on one. What a hit tells about a subscription
// lies in columns by place (columns.go), ten bytes each.
//
// Every distinct filter is evaluated for every event: that is the seam where an
// index of guards will stand, between topic.match and filters.list.
package match
