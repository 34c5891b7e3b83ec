// Package jmespath compiles and evaluates JMESPath expressions and filters with the semantics of
// the JavaScript library that NotifyBC uses.
//
// A [Filter] is the text between [? and ], evaluated over a list of one value. The rules of
// NotifyBC differ from those of the JMESPath specification in a few places: <, <=, > and >= compare
// as JavaScript does, a filter without data is a match, contains_ci is built in, and an error
// anywhere ends the whole filter as no match. An [Expression] is a whole JMESPath expression; its
// errors reach the caller.
//
// # State and failure
//
// An Expression and a Filter never change after they are compiled and are safe for concurrent use.
// An [Evaluator] holds the working memory of one evaluation at a time. Each evaluation has a budget
// of [MaxSteps] steps, which counts expressions, elements and the bytes of texts, and so bounds
// both the time and the memory; an evaluation that exceeds it is an error.
//
// Objects have no order: where JavaScript uses the order in which the keys were written (keys,
// values, a.*, to_string), the order is that of the sorted keys.
//
// The conditions (internal/condition) and the NotifyBC API call the package. It imports only the
// standard library.
package jmespath
