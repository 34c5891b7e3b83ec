package condition

import (
	"hash/maphash"
	"sync"

	"fanfare.dev/fanfare/internal/condition/assert"
	"fanfare.dev/fanfare/internal/condition/lang"
)

// shapeCache are the forms and the terms for filters to come.
type shapeCache struct {
	sync.Mutex
	definition       *compiledDefinition
	paramLiterals    map[string][]bool // by skeleton: which of its literals are params
	filterShapes     map[string]*filterShape
	conjunctShapes   map[string]*filterShape
	bytes            int            // of the texts that were compiled
	seenConjunctions map[uint64]int // compounds by the hash of their skeleton
	seed             maphash.Seed
	buffer           []byte
	tokenPool        sync.Pool // of *[]word
}

// reset forgets what was compiled, for c.
func (sc *shapeCache) reset(c *compiledDefinition) {
	sc.definition, sc.paramLiterals, sc.filterShapes, sc.conjunctShapes = c, map[string][]bool{}, map[string]*filterShape{}, map[string]*filterShape{}
	sc.bytes, sc.seenConjunctions, sc.seed = 0, map[uint64]int{}, maphash.MakeSeed()
}

// compile compiles a text unless known has its form. An s without words is that of a text
// that has no skeleton.
func (sc *shapeCache) compile(known map[string]*filterShape, compile shapeCompiler, text string, tf *lang.TokenizedFilter) (compiledFilter, error) {
	key := []byte(text)
	var taken []bool
	if len(tf.Tokens) > 0 {
		sc.buffer = tf.Key(sc.buffer[:0], nil)
		var met bool
		if taken, met = sc.paramLiterals[string(sc.buffer)]; !met {
			var err error
			if taken, err = findParamLiterals(sc.definition.filterScope, text, tf); err != nil {
				return compiledFilter{}, err
			}
			sc.paramLiterals[string(sc.buffer)] = taken
		}
		sc.buffer = tf.Key(sc.buffer[:0], taken)
		key = sc.buffer
	}
	shape := known[string(key)]
	if shape == nil {
		var err error
		if shape, err = compile(sc.definition.filterScope, string(key), text, tf, taken); err != nil {
			return compiledFilter{}, err
		}
		known[shape.key] = shape
		sc.bytes += len(text)
	}
	if assert.Enabled {
		shape.assertStandsFor(tf, taken)
	}
	return compiledFilter{shape: shape, values: tf.LiteralValues(taken)}, nil
}

// conjunction drafts the conjuncts of a filter that is a chain of them; not ok where it
// is none, where its skeleton has a form, or where one of them is refused: compiling
// the whole then tells why.
func (sc *shapeCache) conjunction(text string, tf *lang.TokenizedFilter) (d compiledFilter, ok bool) {
	parts := tf.Conjuncts()
	if parts == nil || !sc.isRare(tf) {
		return d, false
	}
	d.conjuncts = make([]compiledFilter, len(parts))
	for i := range parts {
		var err error
		if d.conjuncts[i], err = sc.compileConjunct(text, &parts[i]); err != nil {
			return compiledFilter{}, false
		}
	}
	return d, true
}

// compileConjunct drafts one conjunct of text.
func (sc *shapeCache) compileConjunct(text string, tf *lang.TokenizedFilter) (compiledFilter, error) {
	sc.buffer = tf.Key(sc.buffer[:0], nil)
	if taken, met := sc.paramLiterals[string(sc.buffer)]; met {
		sc.buffer = tf.Key(sc.buffer[:0], taken)
		if shape := sc.conjunctShapes[string(sc.buffer)]; shape != nil {
			if assert.Enabled {
				shape.assertStandsFor(tf, taken)
			}
			return compiledFilter{shape: shape, values: tf.LiteralValues(taken)}, nil
		}
	}
	text = tf.TextOf(text)
	own, _ := lang.Tokenize(text, nil) // counts from where the part begins, as CEL will
	return sc.compile(sc.conjunctShapes, compileConjunctShape, text, &own)
}

// A skeleton gets a form when it was met as often as the forms there are allow: a
// form is looked at for every event, a compound for those that meet its guard. So the
// forms of n filters are the square root of n at most, or so.
const (
	conjunctionsPerShape = 32
	maxSeen              = 64 << 10 // skeletons that are counted; beyond, counting begins anew
)

// isRare counts a skeleton and reports whether its filters are compounds.
func (sc *shapeCache) isRare(tf *lang.TokenizedFilter) bool {
	sc.buffer = tf.Key(sc.buffer[:0], nil)
	if _, met := sc.paramLiterals[string(sc.buffer)]; met {
		return false
	}
	if len(sc.seenConjunctions) >= maxSeen {
		clear(sc.seenConjunctions)
	}
	hash := maphash.Bytes(sc.seed, sc.buffer)
	sc.seenConjunctions[hash]++
	return sc.seenConjunctions[hash] <= conjunctionsPerShape*(1+len(sc.filterShapes))
}

// maxDrafts is how many skeletons and forms are kept for filters to come, and
// maxDraftBytes how much text of them: what is compiled is up to a hundred times as
// large. Beyond, all are dropped and compiled again when they come.
const (
	maxCachedShapes = 16 << 10
	maxCachedBytes  = 2 << 20
)

func (sc *shapeCache) isFull() bool {
	return len(sc.filterShapes) >= maxCachedShapes || len(sc.paramLiterals) >= maxCachedShapes || sc.bytes >= maxCachedBytes
}
