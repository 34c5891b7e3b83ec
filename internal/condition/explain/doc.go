// Package explain reports the result of each part of a condition for an event.
//
// It recompiles the condition and evaluates every part with the predicates of the index (expr),
// so that the overall result is that of a match. It keeps no state. The index calls it for
// previews and traces.
package explain
