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
func (ds *shapeCache) reset(c *compiledDefinition) {
	ds.definition, ds.paramLiterals, ds.filterShapes, ds.conjunctShapes = c, map[string][]bool{}, map[string]*filterShape{}, map[string]*filterShape{}
	ds.bytes, ds.seenConjunctions, ds.seed = 0, map[uint64]int{}, maphash.MakeSeed()
}

// compile compiles a text unless known has its form. An s without words is that of a text
// that has no skeleton.
func (ds *shapeCache) compile(known map[string]*filterShape, compile shapeCompiler, text string, s *lang.TokenizedFilter) (compiledFilter, error) {
	key := []byte(text)
	var taken []bool
	if len(s.Tokens) > 0 {
		ds.buffer = s.Key(ds.buffer[:0], nil)
		var met bool
		if taken, met = ds.paramLiterals[string(ds.buffer)]; !met {
			var err error
			if taken, err = findParamLiterals(ds.definition.filterScope, text, s); err != nil {
				return compiledFilter{}, err
			}
			ds.paramLiterals[string(ds.buffer)] = taken
		}
		ds.buffer = s.Key(ds.buffer[:0], taken)
		key = ds.buffer
	}
	fm := known[string(key)]
	if fm == nil {
		var err error
		if fm, err = compile(ds.definition.filterScope, string(key), text, s, taken); err != nil {
			return compiledFilter{}, err
		}
		known[fm.key] = fm
		ds.bytes += len(text)
	}
	if assert.Enabled {
		fm.assertStandsFor(s, taken)
	}
	return compiledFilter{shape: fm, values: s.LiteralValues(taken)}, nil
}

// conjunction drafts the conjuncts of a filter that is a chain of them; not ok where it
// is none, where its skeleton has a form, or where one of them is refused: compiling
// the whole then tells why.
func (ds *shapeCache) conjunction(text string, s *lang.TokenizedFilter) (d compiledFilter, ok bool) {
	parts := s.Conjuncts()
	if parts == nil || !ds.isRare(s) {
		return d, false
	}
	d.conjuncts = make([]compiledFilter, len(parts))
	for i := range parts {
		var err error
		if d.conjuncts[i], err = ds.compileConjunct(text, &parts[i]); err != nil {
			return compiledFilter{}, false
		}
	}
	return d, true
}

// compileConjunct drafts one conjunct of text.
func (ds *shapeCache) compileConjunct(text string, s *lang.TokenizedFilter) (compiledFilter, error) {
	ds.buffer = s.Key(ds.buffer[:0], nil)
	if taken, met := ds.paramLiterals[string(ds.buffer)]; met {
		ds.buffer = s.Key(ds.buffer[:0], taken)
		if fm := ds.conjunctShapes[string(ds.buffer)]; fm != nil {
			if assert.Enabled {
				fm.assertStandsFor(s, taken)
			}
			return compiledFilter{shape: fm, values: s.LiteralValues(taken)}, nil
		}
	}
	text = s.TextOf(text)
	own, _ := lang.Tokenize(text, nil) // counts from where the part begins, as CEL will
	return ds.compile(ds.conjunctShapes, compileConjunctShape, text, &own)
}

// A skeleton gets a form when it was met as often as the forms there are allow: a
// form is looked at for every event, a compound for those that meet its guard. So the
// forms of n filters are the square root of n at most, or so.
const (
	conjunctionsPerShape = 32
	maxSeen              = 64 << 10 // skeletons that are counted; beyond, counting begins anew
)

// isRare counts a skeleton and reports whether its filters are compounds.
func (ds *shapeCache) isRare(s *lang.TokenizedFilter) bool {
	ds.buffer = s.Key(ds.buffer[:0], nil)
	if _, met := ds.paramLiterals[string(ds.buffer)]; met {
		return false
	}
	if len(ds.seenConjunctions) >= maxSeen {
		clear(ds.seenConjunctions)
	}
	hash := maphash.Bytes(ds.seed, ds.buffer)
	ds.seenConjunctions[hash]++
	return ds.seenConjunctions[hash] <= conjunctionsPerShape*(1+len(ds.filterShapes))
}

// maxDrafts is how many skeletons and forms are kept for filters to come, and
// maxDraftBytes how much text of them: what is compiled is up to a hundred times as
// large. Beyond, all are dropped and compiled again when they come.
const (
	maxCachedShapes = 16 << 10
	maxCachedBytes  = 2 << 20
)

func (ds *shapeCache) isFull() bool {
	return len(ds.filterShapes) >= maxCachedShapes || len(ds.paramLiterals) >= maxCachedShapes || ds.bytes >= maxCachedBytes
}
