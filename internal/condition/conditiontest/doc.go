// Package conditiontest compares the matching index with the independent evaluator. Tests
// import it, the product does not.
//
// A Generator draws conditions from the grammar of the language, events, and the params of
// rules. It keeps a pool of the parts that it has drawn and prefers to use them again, as
// they are or with other literals, because the index shares what conditions have in common.
// Every choice comes from Choices: a seeded random source, or the bytes of a fuzzer.
//
// A World has an index with some thousand subscriptions and compares, for a batch of
// events, the complete hits of the index with what the evaluator says of every condition.
// It adds, removes and changes subscriptions, redefines the topic and fills the index anew
// between batches. Pairs of a condition and an event that the evaluator leaves undecided
// are counted and not compared. A difference is reduced to the fewest subscriptions that
// still show it.
package conditiontest
