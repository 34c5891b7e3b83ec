// Package pipeline holds the experiments that go through several stages of the
// server: the latency of each stage, the rate of manifests, digests, and reading
// the history afterwards.
//
// A manifest or an outcome counts as soon as it is durable; see the clocks of package
// harness. Package bench lists and calls the experiments.
package pipeline
