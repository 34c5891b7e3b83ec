// Package benchtest holds what the tests of the experiments share: the API of a
// server whose transactions take a known time. With it a test shows that a clock
// stops after a commit, and not when the commit begins.
package benchtest
