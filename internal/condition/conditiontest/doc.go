// Package conditiontest compares the matching index with the independent evaluator. Only tests
// import it.
//
// A Generator draws conditions from the grammar of the language, events, and the params of
// rules. It keeps a pool of the parts that it has generated and prefers to reuse them,
// unchanged or with other literals, because the index shares the common parts of conditions.
// Every choice comes from Choices: a seeded random source, or the bytes of a fuzzer.
//
// A World has an index with several thousand subscriptions and compares, for a batch of events,
// the complete hits of the index with the evaluator's result for every condition. Between
// batches, it adds, removes and changes subscriptions, redefines the topic and rebuilds the
// index. Pairs of a condition and an event that the evaluator leaves undecided
// are counted and not compared. A difference is reduced to the fewest subscriptions that
// still show it.
package conditiontest
