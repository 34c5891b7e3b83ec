// Package lang is the language of conditions: it reads the text of a condition and refuses
// mistakes with their position.
//
// A condition is CEL. event is the event's data, ce its attributes (ce.source, ce.time), and
// sub the params of a rule. Where the topic has a schema, its top-level fields may be
// written bare (title for event.title), except for names that CEL or Fanfare uses otherwise
// (language.go). In addition to CEL's standard functions and macros there are
// contains_ci, starts_with_ci, geo.within, jmespath and, in a topic with a key, crosses,
// crosses_above and crosses_below. docs/reference/conditions.md describes all of them.
//
// A [Scope] defines which names a condition may use. [Scope.Compile] parses and checks a text
// in it; the result is CEL's syntax tree. The schema of the topic (schema.go) reveals
// mistakes: an unknown field, a string compared with a number, a sum of an integer and a
// double. A [TokenizedFilter] is the same text as tokens, without a syntax tree; filters that
// differ only in literals have equal tokens apart from these.
//
// The package keeps no state. The index (internal/condition), expr and explain call it.
package lang
