// Package evaluator decides Fanfare's conditions a second time, in the simplest
// way there is: it walks the syntax tree of a condition for an event. It exists
// so that the match index can be checked against it, in tests and at run time,
// and so shares no code with the index: it has a lexer, a parser, values, a JSON
// decoder and a reading of JSON Schema of its own, and imports the standard
// library alone. A test in internal/test/arch keeps it so.
//
// A Topic holds what the JSON Schema of a topic says. It makes a Condition of a
// text and an Input of an event; Condition.Evaluate gives the Verdict. A Batch
// evaluates many conditions over the same events and computes what several
// conditions have in common once.
//
// The package promises the meaning that docs/reference/conditions.md describes, which is
// that of CEL with the functions of Fanfare. It does not check types: a
// condition that the product refuses may be evaluated here, and an operation on
// values of the wrong types is an error, "no such overload". Where the language
// leaves the answer open, the verdict is Undecided: an evaluation with more
// steps than an engine must take, what depends on the order of the keys of a
// map, and maps with keys that CEL does not have.
//
// Limits: a text has at most 64 KiB and 250 levels, JSON at most 10,000 levels.
// Messages of Protocol Buffers, optional values and the macros of two variables
// are not part of the language. The reading of JSON Schema follows $ref within
// the document, and not $anchor, $dynamicRef and $id.
package evaluator
