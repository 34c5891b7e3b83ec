// Package evaluator is a second, simple implementation of Fanfare's conditions: it walks the
// syntax tree of a condition for each event. The match index is compared with it in tests and at
// run time. Therefore it shares no code with the index: it has its own lexer, parser, values, JSON
// decoder and JSON Schema reader, and imports only the standard library. A test in
// internal/test/arch enforces this.
//
// A Topic holds the JSON Schema of a topic. It parses a text into a Condition and decodes an event
// into an Input; Condition.Evaluate returns the Verdict. A Batch evaluates many conditions over
// the same events and computes common parts once.
//
// The package implements the semantics of docs/reference/conditions.md: CEL with the functions of
// Fanfare. It does not check types, so it accepts some conditions that the index refuses; an
// operation on values of the wrong types is an error, "no such overload". The verdict is Undecided
// where CEL leaves the answer open: an evaluation with more steps than an engine must support, a
// result that depends on the order of the keys of a map, and a map with keys that CEL does not
// allow.
//
// Limits: a text has at most 64 KiB and 250 levels, JSON at most 10,000 levels. Messages of
// Protocol Buffers, optional values and macros with two variables are not supported. The JSON
// Schema reader follows $ref within the document, but not $anchor, $dynamicRef and $id.
package evaluator
