package condition

import (
	celast "cel.dev/cel-go/common/ast"
)

// A crossingTest compares a value of the event with the same value of the last
// event of its key: it is true where a level lies between the two. The value has
// reached the level, or passed it; one that stood on the level did so before.
// Where there was no event of the key, or the value was no number in it, or NaN,
// nothing is crossed. No number now, or NaN, is an error whatever was before.
type crossingTest struct {
	direction
	now, was, level operand
}

// A direction is where a value goes.
type direction uint8

const (
	upwards direction = 1 << iota
	downwards
	eitherWay = upwards | downwards
)

func (t *crossingTest) eval(f *frame) truth {
	now, _ := t.now.load(f)
	level, _ := t.level.load(f)
	after, ok := compareNumbers(now, level)
	if !ok {
		return fault
	}
	was, _ := t.was.load(f)
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
func (b *builder) crossing(e celast.Expr) test {
	c, ok := crossingOf(e)
	if !ok {
		return nil
	}
	level := b.operand(c.level)
	now, was := b.followed(c)
	if level == nil || now == nil {
		return nil
	}
	return &crossingTest{c.direction, now, was, level}
}

// followed returns the value of a crossing, as it is and as it was, or nothing
// where it hangs on the subscription, or on no event.
func (b *builder) followed(c crossing) (now, was operand) {
	is, ok1 := b.source(c.now)
	before, ok2 := b.source(c.was)
	if !ok1 || !ok2 {
		return nil, nil
	}
	return field{b.path(is)}, field{b.path(before)}
}

// earlier is where a field of the last event of the key begins.
type earlier struct{}

func (earlier) key() string               { return wasName }
func (earlier) load(f *frame) (any, bool) { return f.was.read() }

// past is the last event of the key, read when a condition first asks for it.
type past struct {
	document
	raw     []byte
	shape   *shape
	names   *pathSlots // the members that conditions name
	scanned bool
}

func (p *past) begin(raw []byte, s *shape, names *pathSlots) {
	p.raw, p.shape, p.names, p.scanned = raw, s, names, false
}

// end keeps nothing but the room.
func (p *past) end() {
	clear(p.members)
	*p = past{document: document{members: p.members}}
}

// known reports whether there is one.
func (p *past) known() bool {
	if len(p.raw) == 0 {
		return false
	}
	if !p.scanned {
		p.scanned = true
		if p.scan(p.raw, p.shape, p.names.used, p.names.size) != nil { // it was an event's, so it is JSON
			p.raw = nil
			return false
		}
	}
	return true
}

func (p *past) read() (data any, ok bool) {
	if !p.known() {
		return nil, false
	}
	return p.all(), true
}

// find leads to what was where steps lead.
func (p *past) find(steps []string) (any, slotState) {
	if !p.known() {
		return nil, absent
	}
	if len(steps) > 0 {
		if use := p.names.used[steps[0]]; use != nil { // of a crossing's value of now
			return p.follow(&path{source: source{steps: steps}, top: use.slot})
		}
	}
	return follow(steps, p.all())
}
