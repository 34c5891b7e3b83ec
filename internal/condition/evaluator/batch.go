package evaluator

import (
	"encoding/binary"
	"math/bits"
)

// memoBytes limits the approximate memory of the results that a batch keeps. A batch that exceeds
// it discards all results and computes them again.
const memoBytes = 64 << 20

// Batch evaluates conditions over the same events. It computes a part that several conditions
// share once for all events, and keeps up to 64 MiB of such results. Its verdicts are those of
// Condition.Evaluate. A Batch is for one goroutine.
type Batch struct {
	inputs    []*Input
	words     int
	valid     []uint64                        // the bits of the events
	oversized [len(sizeClasses) + 1]*eventSet // by the rung of a node
	memo      map[string]*verdicts
	vectors   map[string]*vector
	kept      int // bytes in both, about
	limit     int // of them
	key       []byte
	results   [3][]uint64
}

// eventSet are the events whose extent is not within a rung; nil where all are.
type eventSet struct{ set []uint64 }

func (x *eventSet) has(i int) bool { return x != nil && x.set[i>>6]&(1<<(i&63)) != 0 }

// NewBatch prepares a batch over inputs. The inputs and the conditions must be of the same topic.
func NewBatch(_ *Topic, inputs []*Input) *Batch {
	b := &Batch{inputs: inputs, words: (len(inputs) + 63) / 64, limit: memoBytes}
	b.valid = make([]uint64, b.words)
	for i := range inputs {
		b.valid[i>>6] |= 1 << (i & 63)
	}
	for rung := range b.oversized {
		set := make([]uint64, b.words)
		some := false
		for i, in := range inputs {
			if rung == 0 || !in.extent.within(sizeClasses[rung-1]) {
				set[i>>6] |= 1 << (i & 63)
				some = true
			}
		}
		if some {
			b.oversized[rung] = &eventSet{set}
		}
	}
	for i := range b.results {
		b.results[i] = make([]uint64, b.words)
	}
	b.forget()
	return b
}

func (b *Batch) forget() {
	b.memo, b.vectors, b.kept = map[string]*verdicts{}, map[string]*vector{}, 0
}

// Evaluate decides a condition for all events: bit i of a result belongs to event i. The results
// are valid until the next call.
func (b *Batch) Evaluate(c *Condition, p *Params) (true_, error_, undecided []uint64) {
	true_, error_, undecided = b.results[0], b.results[1], b.results[2]
	for _, set := range b.results {
		clear(set)
	}
	alone := b.oversized[c.root.sizeClass]
	switch {
	case p == nil && c.params != nil, p != nil && (c.root.sizeClass == 0 || !p.extent.within(sizeClasses[c.root.sizeClass-1])):
		alone = &eventSet{b.valid}
	default:
		r := b.decide(c.root, p)
		copy(true_, r.true_)
		copy(error_, r.error_)
		copy(undecided, r.undecided)
		for _, set := range b.results {
			for i, word := range b.valid {
				set[i] &= word
			}
			if alone != nil {
				without(set, alone.set)
			}
		}
	}
	if alone != nil {
		for i, word := range alone.set {
			for ; word != 0; word &= word - 1 {
				at := bits.TrailingZeros64(word)
				if r := c.Evaluate(b.inputs[i<<6+at], p).Result; r != False {
					b.results[r-True][i] |= 1 << at
				}
			}
		}
	}
	return true_, error_, undecided
}

// name returns the key of the result of a node: its canonical text and the params that it reads.
// The key is valid until the next call.
func (b *Batch) name(prefix string, n *node, p *Params) []byte {
	b.key = append(append(b.key[:0], prefix...), n.text...)
	for _, name := range n.params {
		b.key = append(b.key, 0)
		if name == wholeParams {
			b.key = appendValue(b.key, p.values)
		} else if at := p.values.ref.findText(name); at >= 0 {
			b.key = appendValue(b.key, p.values.ref.items[at])
		}
	}
	return b.key
}

// appendValue appends an encoding of a param that no other value has.
func appendValue(key []byte, v value) []byte {
	key = append(key, byte(v.kind))
	switch v.kind {
	case kindString:
		key = binary.AppendUvarint(key, uint64(len(v.str)))
		return append(key, v.str...)
	case kindList, kindMap:
		key = binary.AppendUvarint(key, uint64(len(v.ref.items)))
		for _, list := range [...][]value{v.ref.keys, v.ref.items} {
			for _, item := range list {
				key = appendValue(key, item)
			}
		}
		return key
	default:
		return binary.BigEndian.AppendUint64(key, v.num)
	}
}

// keep counts the bytes of a result and its key. If the results exceed the limit, it first
// discards all of them.
func (b *Batch) keep(sizeBytes int) {
	const entry = 160 // of a map, a key and what refers to them
	if b.kept += sizeBytes + len(b.key) + entry; b.kept > b.limit {
		b.forget()
		b.kept = sizeBytes + len(b.key) + entry
	}
}

// decide evaluates a node as a boolean for all events. The result is undefined for an event that
// is too large for the size class of the node.
func (b *Batch) decide(n *node, p *Params) *verdicts {
	switch {
	case !n.truth:
		return b.truthOf(b.vector(n, p))
	case n.op == opLiteral:
		return b.constant(n.literal)
	case n.op == opAnd || n.op == opOr:
		var few [8]*verdicts
		operands := few[:0]
		for _, arg := range n.args {
			operands = append(operands, b.decide(arg, p))
		}
		return joinVerdicts(b.words, n.op == opOr, operands)
	case n.op == opChoose:
		return chooseVerdicts(b.decide(n.args[0], p), b.decide(n.args[1], p), b.decide(n.args[2], p))
	case n.op == opCall && n.fn.name == "!_":
		return negateVerdicts(b.decide(n.args[0], p))
	}
	if known, ok := b.memo[string(b.name("", n, p))]; ok {
		return known
	}
	r := b.decideLeaf(n, p)
	key := string(b.name("", n, p))
	b.keep(r.sizeBytes())
	b.memo[key] = r
	return r
}

// constant returns the verdicts of a node with the same value for all events.
func (b *Batch) constant(v value) *verdicts {
	w := newVerdicts(b.words)
	switch {
	case v.kind == kindUndecided:
		w.undecided = b.valid
	case v.kind != kindBool:
		w.error_ = b.valid
	case v.isTrue():
		w.true_ = b.valid
	}
	return &w.verdicts
}

// truthOf converts values to verdicts; a value that is not a boolean is an error.
func (b *Batch) truthOf(x *vector) *verdicts {
	if x.each == nil {
		return b.constant(x.same)
	}
	w := newVerdicts(b.words)
	for i := range x.each {
		w.set(i, &x.each[i])
	}
	return &w.verdicts
}

// decideLeaf evaluates a node that computes its boolean from values.
func (b *Batch) decideLeaf(n *node, p *Params) *verdicts {
	switch n.op {
	case opHas:
		return b.decideOne(n, b.vector(n.args[0], p))
	case opCall:
		switch len(n.args) {
		case 1:
			return b.decideOne(n, b.vector(n.args[0], p))
		case 2:
			return b.decidePair(n, b.vector(n.args[0], p), b.vector(n.args[1], p), p)
		}
	case opAll, opExists, opExistsOne:
		over, e := b.vector(n.args[0], p), b.evaluation(p)
		return b.decideEach(n, func(i int) value {
			e.in = b.inputs[i]
			return e.macroOver(n, over.at(i))
		})
	case opCross:
		now, level, before := b.vector(n.args[0], p), b.vector(n.args[1], p), b.before(n.args[0], p)
		return b.decideEach(n, func(i int) value { return n.cross.happened(now.at(i), level.at(i), before.at(i)) })
	}
	e := b.evaluation(p)
	return b.decideEach(n, func(i int) value {
		e.in = b.inputs[i]
		return e.eval(n)
	})
}

// decideEach calls result for each event within the size class of n and collects the verdicts.
func (b *Batch) decideEach(n *node, result func(i int) value) *verdicts {
	w, skip := newVerdicts(b.words), b.oversized[n.sizeClass]
	for i := range b.inputs {
		if !skip.has(i) {
			v := result(i)
			w.set(i, &v)
		}
	}
	return &w.verdicts
}

func (b *Batch) decideOne(n *node, x *vector) *verdicts {
	if x.each == nil {
		return b.constant(applyOne(n, x.same))
	}
	return b.decideEach(n, func(i int) value { return applyOne(n, x.each[i]) })
}
