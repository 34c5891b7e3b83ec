package expr

import (
	"strconv"

	"fanfare.dev/fanfare/internal/condition/lang"
)

// Describe names a value of the event.
func (s Source) Describe() string {
	switch s.Root.(type) {
	case nil:
		return lang.FieldPath("event", s.Steps)
	case attributesRoot:
		return lang.FieldPath(lang.AttributesName, s.Steps)
	}
	return "what is computed of the event"
}

// A Path leads from the event's data to a value by the names of fields. Each
// condition has its own paths; those with the same steps share a slot of the
// frame while their conditions are in the index.
type Path struct {
	Source
	Index  int
	Member int // of data: the number of the first step among the members that conditions name
}

// A root is where steps begin: other than the event's data, its attributes, or what
// an expression makes of both.
type root interface {
	Key() string
	Load(f *Frame) (v any, ok bool)
}

// A Source tells where in an event a value is.
type Source struct {
	Root  root // nil: the data themselves
	Steps []string
}

func (p *Path) Follow(v any) (any, valueState) { return FollowSteps(p.Steps, v) }

// FollowSteps walks a path; the state is absent where a step is not there.
func FollowSteps(steps []string, v any) (any, valueState) {
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
func (p *Path) find(f *Frame) (any, valueState) {
	if p.Root == nil {
		return f.Data.Follow(p)
	}
	if _, ofThePast := p.Root.(previousRoot); ofThePast {
		return f.Previous.find(p.Steps)
	}
	v, ok := p.Root.Load(f)
	if !ok {
		return nil, absent
	}
	return p.Follow(v)
}

func (s Source) Key() string {
	var b []byte
	if s.Root != nil {
		b = append(append(b, s.Root.Key()...), ' ')
	}
	for _, step := range s.Steps {
		b = strconv.AppendQuote(b, step)
	}
	return string(b)
}

// PathTable gives slots to the paths of the conditions in the index, and numbers to the
// members that they begin with.
type PathTable struct {
	Values  indexAllocator
	Members indexAllocator
}

type indexAllocator struct {
	Used map[string]*PathUse
	free []int
	Size int // slots that were ever in use
}

type PathUse struct {
	Index, count int
	Nanos        int64 // to find the value
}

// Link gives each path a slot. The conditions that own the paths must not be
// under evaluation.
func (t *PathTable) Link(list []*Path) {
	for _, p := range list {
		use := t.Values.acquire(p.Key())
		p.Index, use.Nanos = use.Index, p.Nanos()
		if p.startsAtMember() {
			p.Member = t.Members.acquire(p.Steps[0]).Index
		}
	}
}

// Unlink gives up the slots that no other condition shares.
func (t *PathTable) Unlink(list []*Path) {
	for _, p := range list {
		t.Values.release(p.Key())
		if p.startsAtMember() {
			t.Members.release(p.Steps[0])
		}
	}
}

// startsAtMember reports whether p begins with a member of the data.
func (p *Path) startsAtMember() bool { return p.Root == nil && len(p.Steps) > 0 }

func (t *indexAllocator) acquire(key string) *PathUse {
	if t.Used == nil {
		t.Used = map[string]*PathUse{}
	}
	use := t.Used[key]
	if use == nil {
		use = &PathUse{Index: t.Size}
		if n := len(t.free); n > 0 {
			use.Index, t.free = t.free[n-1], t.free[:n-1]
		} else {
			t.Size++
		}
		t.Used[key] = use
	}
	use.count++
	return use
}

func (t *indexAllocator) release(key string) {
	use := t.Used[key]
	if use.count--; use.count == 0 {
		delete(t.Used, key)
		t.free = append(t.free, use.Index)
	}
}
