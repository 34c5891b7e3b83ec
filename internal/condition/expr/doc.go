// Package expr compiles conditions into predicates and evaluates them on an event.
//
// A [Builder] turns a syntax tree into a tree of predicates (predicate.go). It uses a CEL
// program for expressions that no predicate covers, such as macros and arithmetic, and keeps
// these programs as small as possible. A [Predicate] is true, false or an error (CEL's
// three-valued logic); only true is a match:
//
//   - A missing field, or a comparison or function with the wrong types, is an error.
//     error || true is true and error && false is false, in either order.
//   - null is a value: event.x == null is true where x is null; event.x > 1 is an error.
//   - Numbers compare by value, 5 equals 5.0. Two integers compare exactly; an integer
//     meets a double as a double, so that neighbours above 2^53 are equal. -0 is 0.
//   - Text compares by code point. Invalid UTF-8 in an event reads as U+FFFD.
//
// A [Frame] contains one event and the params of the row under evaluation. It reads only those
// members of the event that conditions use (document.go) and finds each value once
// per event: paths with the same steps share an index (path.go). Values that are computed from
// the event alone are cached in the same way (computed.go).
//
// The package keeps no state between events except the frames that its callers reuse. The index
// (internal/condition), audiences and explain call it.
package expr
