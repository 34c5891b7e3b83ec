package evaluator

import "math"

// maxSteps limits the steps of an evaluation; one with more steps is undecided. It is a quarter of
// CEL's cost limit of 20,000, because engines count differently.
const maxSteps = 5000

const tooManySteps = "the evaluation takes more than 5000 steps, so an engine may refuse it"

// effort specifies how the steps of a function grow with its arguments.
type effort uint8

const (
	effortPlain    effort = iota
	effortCompare         // with the smaller of the arguments
	effortIn              // with the elements
	effortContains        // with the product of the texts
	effortMatches         // the same, of a pattern
	effortPart            // with the part that is looked for
	effortJoin            // with the sum
	effortConvert         // with the text
)

// An extent is the size of a value, or its upper bound. Extents and steps are whole numbers,
// stored as doubles because they can be very large.
type extent struct {
	text     float64 // bytes of the longest text in it
	elements float64 // elements of the longest list or map in it
	weight   float64 // one for each value in it, and one for each ten bytes
}

var scalar = extent{weight: 1}

func (x extent) max(y extent) extent {
	return extent{max(x.text, y.text), max(x.elements, y.elements), max(x.weight, y.weight)}
}

func (x extent) within(y extent) bool {
	return x.text <= y.text && x.elements <= y.elements && x.weight <= y.weight
}

// length is the size that counts when a text is scanned; cel-go counts the elements of a list
// there.
func (x extent) length() float64 { return x.text + x.elements }

// tens returns the number of ten-byte units in which a text is scanned.
func tens(text float64) float64 { return math.Ceil(text / 10) }

// extentOf returns the extent of a value.
func extentOf(v value) extent {
	text := float64(len(v.str))
	x := extent{text: text, weight: 1 + tens(text)}
	if v.kind != kindList && v.kind != kindMap {
		return x
	}
	x.elements = float64(len(v.ref.items))
	for _, list := range [...][]value{v.ref.keys, v.ref.items} {
		for _, item := range list {
			below := extentOf(item)
			x.text, x.elements = max(x.text, below.text), max(x.elements, below.elements)
			x.weight += below.weight
		}
	}
	return x
}

// steps returns the steps of a function with this effort for its arguments.
func (e effort) steps(a, b extent) float64 {
	switch e {
	case effortCompare:
		return 1 + min(a.weight, b.weight)
	case effortIn:
		return 1 + b.elements + min(b.elements*a.weight, b.weight)
	case effortContains:
		return (1 + tens(a.length())) * (1 + tens(b.length()))
	case effortMatches:
		return (2 + tens(a.length())) * (1 + math.Ceil(b.length()/4))
	case effortPart:
		return 1 + tens(b.length())
	case effortJoin:
		return 1 + tens(a.text+b.text) + a.elements + b.elements
	case effortConvert:
		return 1 + tens(a.length()+b.length())
	default:
		return 1
	}
}

// Steps that are counted once, or for each element, in addition to those of the operands.
const (
	listSteps    = 10
	mapSteps     = 30
	macroSteps   = 12
	elementSteps = 5
	collectSteps = 16
)

// literalSteps returns the steps of a literal with everything in it.
func literalSteps(v value) float64 {
	steps := 1.0
	switch v.kind {
	case kindList:
		steps += listSteps
	case kindMap:
		steps += mapSteps
	default:
		return steps
	}
	for _, list := range [...][]value{v.ref.keys, v.ref.items} {
		for _, item := range list {
			steps += literalSteps(item)
		}
	}
	return steps
}

// sizeClasses are bounds for the extent of an event, from small to large. Each node stores the
// number of the largest class in which no event can make it take more than maxSteps, or 0.
var sizeClasses = [...]extent{
	{32, 4, 32}, {64, 8, 64}, {128, 16, 128}, {256, 16, 256}, {512, 32, 512},
	{1024, 64, 1024}, {2048, 64, 2048}, {4096, 128, 4096}, {8192, 256, 8192}, {16384, 512, 16384}, {65536, 4096, 65536},
}

// A bounder computes the most steps that a node can take, and the greatest extent of its value,
// for events and params up to an extent.
type bounder struct {
	given     extent
	variables []extent
	sizeClass uint8 // recorded in each node that stays below maxSteps; 0: nothing is recorded
}

// bound returns the most steps and the greatest extent of a node.
func (b *bounder) bound(n *node) (steps float64, result extent) {
	steps, result = b.boundNode(n)
	if b.sizeClass > 0 && steps <= maxSteps {
		n.sizeClass = b.sizeClass
	}
	return steps, result
}

func (b *bounder) boundNode(n *node) (steps float64, result extent) {
	switch n.op {
	case opLiteral:
		return n.steps, extentOf(n.literal)
	case opVariable:
		return 1, b.variables[n.level]
	case opEvent, opAttributes, opParams:
		return 1, b.given
	}
	if n.op >= opAll && n.op <= opCollect {
		return b.boundMacro(n)
	}
	var args [2]extent
	steps, result = 1, scalar
	for i, arg := range n.args {
		more, x := b.bound(arg)
		steps += more
		switch {
		case n.op == opList || n.op == opMap:
			result.text, result.elements = max(result.text, x.text), max(result.elements, x.elements)
			result.weight += x.weight
		case n.op == opChoose && i > 0:
			result = result.max(x)
		}
		if i < len(args) {
			args[i] = x
		}
	}
	switch n.op {
	case opSelect:
		return steps, args[0]
	case opList:
		result.elements = max(result.elements, float64(len(n.args)))
		return steps + listSteps, result
	case opMap:
		result.elements = max(result.elements, float64(len(n.args)))
		return steps + mapSteps, result
	case opCross:
		more, _ := b.bound(n.args[0])
		return steps + more, scalar
	case opCall:
		return steps + n.fn.effort.steps(args[0], args[1]), n.fn.extent(args[0], args[1])
	}
	return steps, result
}

func (b *bounder) boundMacro(n *node) (steps float64, result extent) {
	steps, over := b.bound(n.args[0])
	b.variables = append(b.variables[:n.level], over)
	each := float64(elementSteps)
	if n.op == opCollect {
		each = collectSteps
	}
	var body extent
	for i, arg := range n.args[1:] {
		more, x := b.bound(arg)
		b.variables = b.variables[:n.level+1]
		each += more
		if i == 0 {
			body = x
		}
	}
	steps += 1 + macroSteps + over.elements*each
	if n.op != opCollect {
		return steps, scalar
	}
	return steps, extent{body.text, max(over.elements, body.elements), 1 + over.elements*body.weight}
}

// extent returns the greatest extent of the result of f.
func (f *function) extent(a, b extent) extent {
	switch f.name {
	case "_+_":
		return extent{a.text + b.text, a.elements + b.elements, a.weight + b.weight}
	case "_[_]", "dyn":
		return a
	case "string", "bytes", "type":
		const written = 64 // bytes in the text of a number, a time or a type
		return extent{max(a.text, written), 0, max(a.weight, 1+tens(written))}
	}
	return scalar
}

// setSizeClasses sets the size classes of a node and of all nodes below it.
func (n *node) setSizeClasses() {
	b := &bounder{}
	for i, rung := range sizeClasses {
		b.given, b.sizeClass = rung, uint8(i)+1
		b.bound(n)
	}
}
