package condition

import (
	"hash/maphash"
	"sync"

	"fanfare.dev/fanfare/internal/condition/assert"
	"fanfare.dev/fanfare/internal/condition/lang"
)

// shapeCache holds compiled shapes for future filters.
type shapeCache struct {
	sync.Mutex
	definition       *compiledDefinition
	paramLiterals    map[string][]bool // by tokens without literals
	filterShapes     map[string]*filterShape
	conjunctShapes   map[string]*filterShape
	bytes            int            // of compiled texts
	seenConjunctions map[uint64]int // how often the tokens of a conjunction were seen, by their hash
	seed             maphash.Seed
	buffer           []byte
	tokenPool        sync.Pool // of *[]lang.Token
}

// reset empties the cache for a new definition.
func (sc *shapeCache) reset(c *compiledDefinition) {
	sc.definition, sc.paramLiterals, sc.filterShapes, sc.conjunctShapes = c, map[string][]bool{}, map[string]*filterShape{}, map[string]*filterShape{}
	sc.bytes, sc.seenConjunctions, sc.seed = 0, map[uint64]int{}, maphash.MakeSeed()
}

// compile compiles a text unless known has its shape. tf is empty if the text could not be
// tokenized.
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

// conjunction compiles the conjuncts of a filter. It is not ok if the filter is no chain of
// conjuncts, if its shape is common, or if a conjunct is invalid; compiling the whole filter then
// gives the error.
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

// compileConjunct compiles one conjunct of text.
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
	own, _ := lang.Tokenize(text, nil) // its offsets count from the start of the conjunct
	return sc.compile(sc.conjunctShapes, compileConjunctShape, text, &own)
}

// Filters become rows of their own shape, instead of conjunctions, when their tokens have been seen
// often enough for the number of shapes. An event visits each shape, but only the conjunctions that
// their guards lead to. Therefore, n filters have at most about the square root of n shapes.
const (
	conjunctionsPerShape = 32
	maxSeen              = 64 << 10 // number of counters, after which counting starts again
)

// isRare counts the tokens of a filter and reports whether such filters are conjunctions.
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

// Limits of the cache. A compiled shape can take a hundred times the memory of its text. A full
// cache is emptied.
const (
	maxCachedShapes = 16 << 10
	maxCachedBytes  = 2 << 20
)

func (sc *shapeCache) isFull() bool {
	return len(sc.filterShapes) >= maxCachedShapes || len(sc.paramLiterals) >= maxCachedShapes || sc.bytes >= maxCachedBytes
}
