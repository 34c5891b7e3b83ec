package evaluator

// Batch evaluates conditions over the same events.
type Batch struct {
	inputs  []*Input
	results [3][]uint64
}

// NewBatch prepares a batch over inputs, which events of t gave.
func NewBatch(_ *Topic, inputs []*Input) *Batch {
	b := &Batch{inputs: inputs}
	for i := range b.results {
		b.results[i] = make([]uint64, (len(inputs)+63)/64)
	}
	return b
}

// Evaluate decides a condition for all events of the batch: bit i of a result
// is that of event i. The results are valid until the next call.
func (b *Batch) Evaluate(c *Condition, p *Params) (true_, error_, undecided []uint64) {
	for _, bits := range b.results {
		clear(bits)
	}
	for i, in := range b.inputs {
		if r := c.Evaluate(in, p).Result; r != False {
			b.results[r-True][i/64] |= 1 << (i % 64)
		}
	}
	return b.results[0], b.results[1], b.results[2]
}
