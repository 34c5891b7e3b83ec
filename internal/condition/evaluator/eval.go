package evaluator

// An evaluation evaluates a condition for one event.
type evaluation struct {
	in        *Input
	params    value
	past      bool // event is the data of the last event of the key
	counting  bool // steps are counted, and && and || evaluate all operands
	steps     float64
	variables []value
}

// spend counts steps; it returns false if there are too many.
func (e *evaluation) spend(steps float64) bool {
	e.steps += steps
	return e.steps <= maxSteps
}

// eval returns the value of a node. An error in an operand is the result, except in &&, || and the
// macros all and exists.
func (e *evaluation) eval(n *node) value {
	if e.counting && !e.spend(max(n.steps, 1)) {
		return undecided(tooManySteps)
	}
	switch n.op {
	case opLiteral:
		return n.literal
	case opVariable:
		return e.variables[n.level]
	case opEvent:
		if e.past {
			return e.in.was
		}
		return e.in.event
	case opAttributes:
		return e.in.attributes
	case opParams:
		return e.params
	case opSelect:
		a := e.eval(n.args[0])
		if !a.decided() {
			return a
		}
		return selectField(a, n.name, n.why)
	case opHas:
		a := e.eval(n.args[0])
		if !a.decided() {
			return a
		}
		return hasField(a, n.name)
	case opAnd, opOr:
		return e.junction(n)
	case opChoose:
		return e.choose(n)
	case opList, opMap:
		return e.composite(n)
	case opCall:
		return e.call(n)
	case opCross:
		return e.cross(n)
	default:
		return e.macro(n)
	}
}

// A joined is the result of && or || of the operands so far.
type joined struct {
	decisive bool // the boolean that decides: false of &&, true of ||
	decided  bool
	result   value // where it is not decided
}

func join(decisive bool) joined {
	return joined{decisive: decisive, result: boolValue(!decisive)}
}

// add adds an operand. A decisive operand takes precedence over an undecided one, that over an
// error, and the first error over later ones.
func (j *joined) add(v value) {
	switch {
	case v.kind == kindBool:
		j.decided = j.decided || v.isTrue() == j.decisive
	case v.kind == kindUndecided:
		if j.result.kind != kindUndecided {
			j.result = v
		}
	case j.result.kind == kindBool:
		if v.kind != kindError {
			v = errorValue(noOverload)
		}
		j.result = v
	}
}

func (j *joined) value() value {
	if j.decided {
		return boolValue(j.decisive)
	}
	return j.result
}

func (e *evaluation) junction(n *node) value {
	j := join(n.op == opOr)
	for _, arg := range n.args {
		if j.add(e.eval(arg)); j.decided && !e.counting {
			break
		}
	}
	return j.value()
}

func (e *evaluation) choose(n *node) value {
	switch c := e.eval(n.args[0]); {
	case !c.decided():
		return c
	case c.kind != kindBool:
		return errorValue(noOverload)
	case c.isTrue():
		return e.eval(n.args[1])
	default:
		return e.eval(n.args[2])
	}
}

func (e *evaluation) composite(n *node) value {
	values := make([]value, len(n.args))
	for i, arg := range n.args {
		values[i] = e.eval(arg)
	}
	if e.counting {
		e.spend(listSteps)
		if n.op == opMap {
			e.spend(mapSteps - listSteps)
		}
	}
	return build(n, values)
}

// build makes the list or map of a node from the values of its operands.
func build(n *node, values []value) value {
	if bad := strict(values...); !bad.decided() {
		return bad
	}
	if n.op == opList {
		return listValue(values)
	}
	keys, items := make([]value, 0, len(values)/2), make([]value, 0, len(values)/2)
	for i := 0; i < len(values); i += 2 {
		keys, items = append(keys, values[i]), append(items, values[i+1])
	}
	return mapValue(keys, items)
}

// strict returns the first error among the operands of a function, else the first undecided one,
// else null.
func strict(values ...value) value {
	found := nullValue
	for i := range values {
		switch values[i].kind {
		case kindError:
			return values[i]
		case kindUndecided:
			if found.decided() {
				found = values[i]
			}
		}
	}
	return found
}

func (e *evaluation) call(n *node) value {
	switch len(n.args) {
	case 1:
		a := e.eval(n.args[0])
		if !a.decided() {
			return a
		}
		if e.counting && !e.spend(n.fn.effort.steps(extentOf(a), extent{})) {
			return undecided(tooManySteps)
		}
		return n.fn.one(n, a)
	case 2:
		a := e.eval(n.args[0])
		if a.kind == kindError && !e.counting {
			return a
		}
		b := e.eval(n.args[1])
		if !a.decided() || !b.decided() {
			return either(a, b)
		}
		if e.counting && !e.spend(n.fn.effort.steps(extentOf(a), extentOf(b))) {
			return undecided(tooManySteps)
		}
		return n.fn.two(n, a, b)
	default:
		values := make([]value, len(n.args))
		for i, arg := range n.args {
			values[i] = e.eval(arg)
		}
		if bad := strict(values...); !bad.decided() {
			return bad
		}
		if e.counting {
			e.spend(1)
		}
		return n.fn.many(values)
	}
}

// either is strict for two values of which at least one is an error or undecided.
func either(a, b value) value {
	switch {
	case a.kind == kindError:
		return a
	case b.kind == kindError:
		return b
	case a.kind == kindUndecided:
		return a
	default:
		return b
	}
}

func (e *evaluation) cross(n *node) value {
	now, level := e.eval(n.args[0]), e.eval(n.args[1])
	before := errorValue("")
	if e.in.hasWas {
		e.past = true
		before = e.eval(n.args[0])
		e.past = false
	}
	return n.cross.happened(now, level, before)
}

// macro evaluates a macro over the elements of a list or the keys of a map.
func (e *evaluation) macro(n *node) value {
	over := e.eval(n.args[0])
	if e.counting && !e.spend(macroSteps) {
		return undecided(tooManySteps)
	}
	return e.macroOver(n, over)
}

func (e *evaluation) macroOver(n *node, over value) value {
	var elements []value
	unordered := false
	switch over.kind {
	case kindError, kindUndecided:
		return over
	case kindList:
		elements, unordered = over.ref.items, over.ref.unordered
	case kindMap:
		elements, unordered = over.ref.keys, true
	default:
		// cel-go treats the empty text as an empty list; the CEL specification treats neither
		// so.
		if over.kind != kindString && over.kind != kindBytes || over.str != "" {
			return errorValue("a " + typeNames[over.kind] + " has no elements")
		}
	}
	for len(e.variables) <= n.level {
		e.variables = append(e.variables, value{})
	}
	if n.op == opCollect {
		return e.collect(n, elements, unordered)
	}
	if n.op == opExistsOne {
		return e.existsOne(n, elements)
	}
	j := join(n.op == opExists)
	for _, element := range elements {
		if e.counting && !e.spend(elementSteps) {
			return undecided(tooManySteps)
		}
		e.variables[n.level] = element
		if j.add(e.eval(n.args[1])); j.decided && !e.counting {
			break
		}
	}
	return j.value()
}

// A collected is the state of a macro whose result is an error if any element is one.
type collected struct {
	items []value
	found int
	bad   value // the first error, else something undecided; null without
}

// fail records an error or undecided value, and reports whether the result is final.
func (c *collected) fail(v value) bool {
	if c.bad.kind != kindError {
		c.bad = v
	}
	return c.bad.kind == kindError
}

func (e *evaluation) existsOne(n *node, elements []value) value {
	c := collected{bad: nullValue}
	for _, element := range elements {
		if e.counting && !e.spend(elementSteps) {
			return undecided(tooManySteps)
		}
		e.variables[n.level] = element
		v := predicate(e.eval(n.args[1]))
		if !v.decided() {
			if c.fail(v) && !e.counting {
				break
			}
		} else if v.isTrue() {
			c.found++
		}
	}
	if !c.bad.decided() {
		return c.bad
	}
	return boolValue(c.found == 1)
}

// collect evaluates map and filter.
func (e *evaluation) collect(n *node, elements []value, unordered bool) value {
	c := collected{bad: nullValue}
	for _, element := range elements {
		if e.counting && !e.spend(collectSteps) {
			return undecided(tooManySteps)
		}
		e.variables[n.level] = element
		v := trueValue
		if len(n.args) > 2 {
			v = predicate(e.eval(n.args[2]))
		}
		if v.decided() && !v.isTrue() {
			continue
		}
		if v.decided() {
			v = e.eval(n.args[1])
		}
		if v.decided() {
			c.items = append(c.items, v)
		} else if c.fail(v) && !e.counting {
			break
		}
	}
	if !c.bad.decided() {
		return c.bad
	}
	return value{kind: kindList, ref: &composite{items: c.items, unordered: unordered}}
}

// predicate returns an error for a value that is not a boolean.
func predicate(v value) value {
	if v.kind > kindUndecided && v.kind != kindBool {
		return errorValue(noOverload)
	}
	return v
}
