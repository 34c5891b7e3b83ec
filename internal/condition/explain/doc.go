// Package explain tells a person what each part of a condition comes to for an event.
//
// It compiles the condition anew and evaluates every part with the predicates of the index
// (expr), so that the result of the whole is that of a match. It keeps nothing. The index
// calls it for previews and traces.
package explain
