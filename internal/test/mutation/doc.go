// Package mutation tests the tests of the matching index. It changes the index in one place
// at a time and demands that the comparison with the independent evaluator, or another test
// of the index, fails.
//
// # How it works
//
// It finds the places by syntax: each condition of an if, a for and a case, each operand of
// && and ||, each comparison, each assignment and each call whose result nobody uses, in all
// functions of internal/condition but those that decide nothing about a match ([notMatching]). A
// place is named after its function, its kind and its number in the function, so that the
// name survives renames of files and changes of other functions.
//
// All mutants are compiled at once: every place asks at run time whether it is the one that
// is changed, which an environment variable says. One compilation serves for all of them, and
// one mutant costs a run of the detectors. Nothing is written into the tree; the changed
// sources replace the others by an overlay. Places that the detectors never reach are listed
// and not run.
//
// A mutant is found when a detector fails, panics, or takes longer than its time limit.
// Mutants that survive are explained by class in survivors.md, or the run fails.
package mutation
