package match

import "strconv"

// A path leads from the event's data to a value by the names of fields. Each
// condition has its own paths; those with the same steps share a slot of the
// frame while their conditions are in the index.
type path struct {
	steps []string
	slot  int
}

// follow walks the path; the state is absent where a step is not there.
func (p *path) follow(v any) (any, slotState) {
	for _, step := range p.steps {
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

func (p *path) key() string {
	var b []byte
	for _, step := range p.steps {
		b = strconv.AppendQuote(b, step)
	}
	return string(b)
}

// paths gives slots to the paths of the conditions in the index.
type paths struct {
	used map[string]*pathUse
	free []int
	size int // slots that were ever in use
}

type pathUse struct{ slot, count int }

// link gives each path a slot. The conditions that own the paths must not be
// under evaluation.
func (t *paths) link(list []*path) {
	if t.used == nil {
		t.used = map[string]*pathUse{}
	}
	for _, p := range list {
		key := p.key()
		use := t.used[key]
		if use == nil {
			use = &pathUse{slot: t.newSlot()}
			t.used[key] = use
		}
		use.count++
		p.slot = use.slot
	}
}

// unlink gives up the slots that no other condition shares.
func (t *paths) unlink(list []*path) {
	for _, p := range list {
		key := p.key()
		use := t.used[key]
		if use.count--; use.count == 0 {
			delete(t.used, key)
			t.free = append(t.free, use.slot)
		}
	}
}

func (t *paths) newSlot() int {
	if n := len(t.free); n > 0 {
		slot := t.free[n-1]
		t.free = t.free[:n-1]
		return slot
	}
	t.size++
	return t.size - 1
}
