package expr

import (
	"strconv"

	"fanfare.dev/fanfare/internal/condition/lang"
)

// Describe returns a readable name of the value.
func (s Source) Describe() string {
	switch s.Root.(type) {
	case nil:
		return lang.FieldPath("event", s.Steps)
	case attributesRoot:
		return lang.FieldPath(lang.AttributesName, s.Steps)
	}
	return "a value computed from the event"
}

// A Path is a way from a root to a value by the names of fields. Each condition has its own paths.
// Paths with the same steps share a cached value in the frame while their conditions are in the
// index.
type Path struct {
	Source
	Index  int
	Member int // of event data: the number of the first step among the members that conditions use
}

// A root is the start of steps that do not begin at the event's data: its attributes, or a value that is
// computed from the event.
type root interface {
	Key() string
	Load(f *Frame) (v any, ok bool)
}

// A Source specifies where a value of an event comes from.
type Source struct {
	Root  root // nil: the event's data
	Steps []string
}

func (p *Path) Follow(v any) (any, ValueState) { return FollowSteps(p.Steps, v) }

// FollowSteps returns the value at steps below v.
func FollowSteps(steps []string, v any) (any, ValueState) {
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

// find returns the value at the path.
func (p *Path) find(f *Frame) (any, ValueState) {
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

// PathTable numbers the cached values of the paths of all conditions in the index, and the members
// that the paths begin with.
type PathTable struct {
	Values  indexAllocator
	Members indexAllocator
}

type indexAllocator struct {
	Used map[string]*PathUse
	free []int
	Size int // one more than the highest number ever used
}

type PathUse struct {
	Index, count int
	Nanos        int64 // to compute the value
}

// Link gives each path its numbers. No condition that owns one of the paths may be under
// evaluation.
func (t *PathTable) Link(list []*Path) {
	for _, p := range list {
		use := t.Values.acquire(p.Key())
		p.Index, use.Nanos = use.Index, p.Nanos()
		if p.startsAtMember() {
			p.Member = t.Members.acquire(p.Steps[0]).Index
		}
	}
}

// Unlink releases the numbers.
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
