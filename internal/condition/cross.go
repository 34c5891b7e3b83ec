package condition

import (
	celast "cel.dev/cel-go/common/ast"
)

// A crossingTest compares a value of the event with the same value of the last
// event of its key: it is true where a level lies between the two. The value has
// reached the level, or passed it; one that stood on the level did so before.
// Where there was no event of the key, or the value was no number in it, or NaN,
// nothing is crossed. No number now, or NaN, is an error whatever was before.
type CrossingPredicate struct {
	direction
	now, previous, level operand
}

// A direction is where a value goes.
type direction uint8

const (
	upwards direction = 1 << iota
	downwards
	eitherWay = upwards | downwards
)

func (t *CrossingPredicate) eval(f *frame) Truth {
	now, _ := t.now.load(f)
	level, _ := t.level.load(f)
	after, ok := compareNumbers(now, level)
	if !ok {
		return Error
	}
	was, _ := t.previous.load(f)
	before, ok := compareNumbers(was, level)
	return truthOf(ok && t.crossed(before, after))
}

// crossed tells by how the value compared with the level before and after.
func (d direction) crossed(before, after int) bool {
	return d&upwards != 0 && before < 0 && after >= 0 || d&downwards != 0 && before > 0 && after <= 0
}

func compareNumbers(a, b any) (order int, ok bool) {
	_, ok1 := toFloat(a)
	_, ok2 := toFloat(b)
	if !ok1 || !ok2 {
		return 0, false
	}
	return compare(a, b)
}

// crossing returns the test of a crossing, or nil where cel-go has to evaluate it.
func (b *builder) crossing(e celast.Expr) Predicate {
	c, ok := crossingOf(e)
	if !ok {
		return nil
	}
	level := b.operand(c.level)
	now, was := b.crossingOperands(c)
	if level == nil || now == nil {
		return nil
	}
	return &CrossingPredicate{c.direction, now, was, level}
}

// crossingOperands returns the value of a crossing, as it is and as it was, or nothing
// where it hangs on the subscription, or on no event.
func (b *builder) crossingOperands(c crossing) (now, was operand) {
	is, ok1 := b.source(c.now)
	before, ok2 := b.source(c.previous)
	if !ok1 || !ok2 {
		return nil, nil
	}
	return field{b.path(is)}, field{b.path(before)}
}

// previousRoot is where a field of the last event of the key begins.
type previousRoot struct{}

func (previousRoot) key() string               { return previousName }
func (previousRoot) load(f *frame) (any, bool) { return f.previous.decoded() }

// previousEvent is the last event of the key, read when a condition first asks for it.
type previousEvent struct {
	document
	raw           []byte
	schema        *schemaType
	memberNumbers *indexAllocator // the members that conditions name
	scanned       bool
}

func (p *previousEvent) begin(raw []byte, s *schemaType, names *indexAllocator) {
	p.raw, p.schema, p.memberNumbers, p.scanned = raw, s, names, false
}

// end keeps nothing but the room.
func (p *previousEvent) end() {
	clear(p.members)
	*p = previousEvent{document: document{members: p.members}}
}

// exists reports whether there is one.
func (p *previousEvent) exists() bool {
	if len(p.raw) == 0 {
		return false
	}
	if !p.scanned {
		p.scanned = true
		if p.scan(p.raw, p.schema, p.memberNumbers.used, p.memberNumbers.size) != nil { // it was an event's, so it is JSON
			p.raw = nil
			return false
		}
	}
	return true
}

func (p *previousEvent) decoded() (data any, ok bool) {
	if !p.exists() {
		return nil, false
	}
	return p.all(), true
}

// find leads to what was where steps lead.
func (p *previousEvent) find(steps []string) (any, valueState) {
	if !p.exists() {
		return nil, absent
	}
	if len(steps) > 0 {
		if use := p.memberNumbers.used[steps[0]]; use != nil { // of a crossing's value of now
			return p.follow(&path{source: source{steps: steps}, member: use.index})
		}
	}
	return followSteps(steps, p.all())
}
