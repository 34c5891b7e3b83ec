package condition

import (
	"hash/maphash"
	"sync"
)

// drafts are the forms and the terms for filters to come.
type drafts struct {
	sync.Mutex
	of     *compiledTopic
	taken  map[string][]bool // by skeleton: which of its literals are params
	forms  map[string]*form
	terms  map[string]*form
	bytes  int            // of the texts that were compiled
	seen   map[uint64]int // compounds by the hash of their skeleton
	seed   maphash.Seed
	buffer []byte
	words  sync.Pool // of *[]word
}

// reset forgets what was compiled, for c.
func (ds *drafts) reset(c *compiledTopic) {
	ds.of, ds.taken, ds.forms, ds.terms = c, map[string][]bool{}, map[string]*form{}, map[string]*form{}
	ds.bytes, ds.seen, ds.seed = 0, map[uint64]int{}, maphash.MakeSeed()
}

// one compiles a text unless known has its form. An s without words is that of a text
// that has no skeleton.
func (ds *drafts) one(known map[string]*form, compile compiler, text string, s *skeleton) (draft, error) {
	key := []byte(text)
	var taken []bool
	if len(s.words) > 0 {
		ds.buffer = s.key(ds.buffer[:0], nil)
		var met bool
		if taken, met = ds.taken[string(ds.buffer)]; !met {
			var err error
			if taken, err = ds.of.filters.takeable(text, s); err != nil {
				return draft{}, err
			}
			ds.taken[string(ds.buffer)] = taken
		}
		ds.buffer = s.key(ds.buffer[:0], taken)
		key = ds.buffer
	}
	fm := known[string(key)]
	if fm == nil {
		var err error
		if fm, err = compile(ds.of.filters, string(key), text, s, taken); err != nil {
			return draft{}, err
		}
		known[fm.key] = fm
		ds.bytes += len(text)
	}
	if assertions {
		fm.assertStandsFor(s, taken)
	}
	return draft{form: fm, values: s.values(taken)}, nil
}

// compound drafts the conjuncts of a filter that is a chain of them; not ok where it
// is none, where its skeleton has a form, or where one of them is refused: compiling
// the whole then tells why.
func (ds *drafts) compound(text string, s *skeleton) (d draft, ok bool) {
	parts := s.conjuncts()
	if parts == nil || !ds.rare(s) {
		return d, false
	}
	d.parts = make([]draft, len(parts))
	for i := range parts {
		var err error
		if d.parts[i], err = ds.part(text, &parts[i]); err != nil {
			return draft{}, false
		}
	}
	return d, true
}

// part drafts one conjunct of text.
func (ds *drafts) part(text string, s *skeleton) (draft, error) {
	ds.buffer = s.key(ds.buffer[:0], nil)
	if taken, met := ds.taken[string(ds.buffer)]; met {
		ds.buffer = s.key(ds.buffer[:0], taken)
		if fm := ds.terms[string(ds.buffer)]; fm != nil {
			if assertions {
				fm.assertStandsFor(s, taken)
			}
			return draft{form: fm, values: s.values(taken)}, nil
		}
	}
	text = s.cut(text)
	own, _ := readSkeleton(text, nil) // counts from where the part begins, as CEL will
	return ds.one(ds.terms, compileTerm, text, &own)
}

// A skeleton gets a form when it was met as often as the forms there are allow: a
// form is looked at for every event, a compound for those that meet its guard. So the
// forms of n filters are the square root of n at most, or so.
const (
	compoundsPerForm = 32
	maxSeen          = 64 << 10 // skeletons that are counted; beyond, counting begins anew
)

// rare counts a skeleton and reports whether its filters are compounds.
func (ds *drafts) rare(s *skeleton) bool {
	ds.buffer = s.key(ds.buffer[:0], nil)
	if _, met := ds.taken[string(ds.buffer)]; met {
		return false
	}
	if len(ds.seen) >= maxSeen {
		clear(ds.seen)
	}
	hash := maphash.Bytes(ds.seed, ds.buffer)
	ds.seen[hash]++
	return ds.seen[hash] <= compoundsPerForm*(1+len(ds.forms))
}

// maxDrafts is how many skeletons and forms are kept for filters to come, and
// maxDraftBytes how much text of them: what is compiled is up to a hundred times as
// large. Beyond, all are dropped and compiled again when they come.
const (
	maxDrafts     = 16 << 10
	maxDraftBytes = 2 << 20
)

func (ds *drafts) full() bool {
	return len(ds.forms) >= maxDrafts || len(ds.taken) >= maxDrafts || ds.bytes >= maxDraftBytes
}
