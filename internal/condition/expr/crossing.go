package expr

import (
	celast "cel.dev/cel-go/common/ast"

	"fanfare.dev/fanfare/internal/condition/lang"
)

// A CrossingPredicate compares a value of the event with the same value of the previous event with
// the same key. It is true if the value has since reached or passed the level. Without a previous
// event, or if its value was NaN or not a number, nothing is crossed. If the current value is NaN
// or not a number, the result is an error.
type CrossingPredicate struct {
	lang.Direction
	now, previous, level Operand
}

func (t *CrossingPredicate) Eval(f *Frame) Truth {
	now, _ := t.now.Load(f)
	level, _ := t.level.Load(f)
	after, ok := CompareNumbers(now, level)
	if !ok {
		return Error
	}
	was, _ := t.previous.Load(f)
	before, ok := CompareNumbers(was, level)
	return TruthOf(ok && t.Crossed(before, after))
}

func CompareNumbers(a, b any) (order int, ok bool) {
	_, ok1 := ToFloat(a)
	_, ok2 := ToFloat(b)
	if !ok1 || !ok2 {
		return 0, false
	}
	return compare(a, b)
}

// crossing returns the predicate of a crossing, or nil if cel-go must evaluate it.
func (b *Builder) crossing(e celast.Expr) Predicate {
	c, ok := lang.CrossingOf(e)
	if !ok {
		return nil
	}
	level := b.Operand(c.Level)
	now, was := b.CrossingOperands(c)
	if level == nil || now == nil {
		return nil
	}
	return &CrossingPredicate{c.Direction, now, was, level}
}

// CrossingOperands returns the current and the previous value of a crossing, or nil if they depend
// on the subscription or on no event.
func (b *Builder) CrossingOperands(c lang.Crossing) (now, was Operand) {
	is, ok1 := b.Source(c.Now)
	before, ok2 := b.Source(c.Previous)
	if !ok1 || !ok2 {
		return nil, nil
	}
	return Field{b.Path(is)}, Field{b.Path(before)}
}

// previousRoot is the root of fields of the previous event with the same key.
type previousRoot struct{}

func (previousRoot) Key() string               { return lang.PreviousName }
func (previousRoot) Load(f *Frame) (any, bool) { return f.Previous.Decoded() }

// previousEvent is the previous event with the same key, read when a condition first needs it.
type previousEvent struct {
	Document
	raw           []byte
	schema        *lang.SchemaType
	memberNumbers *indexAllocator // numbers of the members that conditions use
	scanned       bool
}

func (p *previousEvent) Begin(raw []byte, s *lang.SchemaType, names *indexAllocator) {
	p.raw, p.schema, p.memberNumbers, p.scanned = raw, s, names, false
}

// end keeps only the memory.
func (p *previousEvent) end() {
	clear(p.members)
	*p = previousEvent{Document: Document{members: p.members}}
}

// exists reports whether there is a previous event.
func (p *previousEvent) exists() bool {
	if len(p.raw) == 0 {
		return false
	}
	if !p.scanned {
		p.scanned = true
		if p.Scan(p.raw, p.schema, p.memberNumbers.Used, p.memberNumbers.Size) != nil { // it was accepted as an event, so it is JSON
			p.raw = nil
			return false
		}
	}
	return true
}

func (p *previousEvent) Decoded() (data any, ok bool) {
	if !p.exists() {
		return nil, false
	}
	return p.All(), true
}

// find returns the value at steps.
func (p *previousEvent) find(steps []string) (any, ValueState) {
	if !p.exists() {
		return nil, absent
	}
	if len(steps) > 0 {
		if use := p.memberNumbers.Used[steps[0]]; use != nil { // the current value of a crossing uses this member too
			return p.Follow(&Path{Source: Source{Steps: steps}, Member: use.Index})
		}
	}
	return FollowSteps(steps, p.All())
}
