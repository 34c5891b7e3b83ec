// Package mutation has the test of the tests: each mutation changes one line of the
// engine of conditions as it is compiled, and the oracle of internal/match must find
// out. Nothing is written into the tree.
//
// A mutation names its line by its text. Where the text is gone, or is there twice, the
// test fails until somebody says which line it is now: a mutation that changes nothing
// would prove nothing.
package mutation
