package condition

import "strconv"

// A path leads from the event's data to a value by the names of fields. Each
// condition has its own paths; those with the same steps share a slot of the
// frame while their conditions are in the index.
type path struct {
	source
	index  int
	member int // of data: the number of the first step among the members that conditions name
}

// A root is where steps begin: other than the event's data, its attributes, or what
// an expression makes of both.
type root interface {
	key() string
	load(f *frame) (v any, ok bool)
}

// A source tells where in an event a value is.
type source struct {
	root  root // nil: the data themselves
	steps []string
}

func (p *path) follow(v any) (any, valueState) { return followSteps(p.steps, v) }

// followSteps walks a path; the state is absent where a step is not there.
func followSteps(steps []string, v any) (any, valueState) {
	for _, step := range steps {
		m, ok := v.(map[string]any)
		if !ok {
			return nil, absent
		}
		if v, ok = m[step]; !ok {
			return nil, absent
		}
	}
	return v, present
}

// find follows the path from its root.
func (p *path) find(f *frame) (any, valueState) {
	if p.root == nil {
		return f.data.follow(p)
	}
	if _, ofThePast := p.root.(previousRoot); ofThePast {
		return f.previous.find(p.steps)
	}
	v, ok := p.root.load(f)
	if !ok {
		return nil, absent
	}
	return p.follow(v)
}

func (s source) key() string {
	var b []byte
	if s.root != nil {
		b = append(append(b, s.root.key()...), ' ')
	}
	for _, step := range s.steps {
		b = strconv.AppendQuote(b, step)
	}
	return string(b)
}

// pathTable gives slots to the paths of the conditions in the index, and numbers to the
// members that they begin with.
type pathTable struct {
	values  indexAllocator
	members indexAllocator
}

type indexAllocator struct {
	used map[string]*pathUse
	free []int
	size int // slots that were ever in use
}

type pathUse struct {
	index, count int
	nanos        int64 // to find the value
}

// link gives each path a slot. The conditions that own the paths must not be
// under evaluation.
func (t *pathTable) link(list []*path) {
	for _, p := range list {
		use := t.values.acquire(p.key())
		p.index, use.nanos = use.index, p.nanos()
		if p.startsAtMember() {
			p.member = t.members.acquire(p.steps[0]).index
		}
	}
}

// unlink gives up the slots that no other condition shares.
func (t *pathTable) unlink(list []*path) {
	for _, p := range list {
		t.values.release(p.key())
		if p.startsAtMember() {
			t.members.release(p.steps[0])
		}
	}
}

// startsAtMember reports whether p begins with a member of the data.
func (p *path) startsAtMember() bool { return p.root == nil && len(p.steps) > 0 }

func (t *indexAllocator) acquire(key string) *pathUse {
	if t.used == nil {
		t.used = map[string]*pathUse{}
	}
	use := t.used[key]
	if use == nil {
		use = &pathUse{index: t.size}
		if n := len(t.free); n > 0 {
			use.index, t.free = t.free[n-1], t.free[:n-1]
		} else {
			t.size++
		}
		t.used[key] = use
	}
	use.count++
	return use
}

func (t *indexAllocator) release(key string) {
	use := t.used[key]
	if use.count--; use.count == 0 {
		delete(t.used, key)
		t.free = append(t.free, use.index)
	}
}
