package move

import (
	"context"

	"fanfare.dev/fanfare/internal/store"
)

// replay replays recorded transactions in a part, together as long as they are of the same way.
func replay(ctx context.Context, part store.Part, log []byte) error {
	for len(log) > 0 {
		way, some, rest, err := together(log)
		if err == nil {
			switch way {
			case wayScrub:
				err = part.Scrub(ctx, names(some[0]))
			case wayErase:
				err = part.Erase(ctx, again(some))
			default:
				err = part.Write(ctx, again(some))
			}
		}
		if err != nil {
			return err
		}
		log = rest
	}
	return nil
}

// together returns the first transactions that are of the same way.
func together(log []byte) (way byte, some [][]byte, rest []byte, err error) {
	for len(log) > 0 {
		r := reader{b: log}
		one := reader{b: r.bytes()}
		next := one.byte()
		if r.err != nil || one.err != nil {
			r.fail()
			return 0, nil, nil, r.err
		}
		if len(some) > 0 && (next != way || way == wayScrub) {
			break
		}
		way, some, log = next, append(some, one.b), r.b
	}
	return way, some, log, nil
}

func again(transactions [][]byte) func(store.Session) error {
	return func(s store.Session) error {
		for _, t := range transactions {
			if err := statements(s, t); err != nil {
				return err
			}
		}
		return nil
	}
}

// statements runs the statements of one transaction. It reads and ignores their results.
func statements(s store.Session, transaction []byte) error {
	r := reader{b: transaction}
	for len(r.b) > 0 {
		op := r.byte()
		name := string(r.bytes())
		n := 1
		if op == opEachOf || op == opInsert {
			n = int(r.uvarint())
		}
		sets := make([]reader, 0, min(n, len(r.b)))
		for range n {
			if r.err != nil {
				return r.err
			}
			sets = append(sets, reader{b: r.bytes()})
		}
		if r.err != nil {
			return r.err
		}
		var err error
		switch op {
		case opRun:
			err = s.Run(name, sets[0].args()...)
		case opEach:
			err = s.Each(name, func(store.Row) error { return nil }, sets[0].args()...)
		case opEachOf:
			err = s.EachOf(name, n, func(i int) []any { set := sets[i]; return set.args() }, func(int, store.Row) error { return nil })
		case opInsert:
			err = s.Insert(name, n, func(i int, to store.Values) {
				for set := sets[i]; len(set.b) > 0; {
					set.value(to)
				}
			})
		default:
			r.fail()
			return r.err
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func names(scrub []byte) [][]byte {
	outer := reader{b: scrub}
	set := reader{b: outer.bytes()}
	var list [][]byte
	for _, name := range set.args() {
		if b, ok := name.([]byte); ok {
			list = append(list, b)
		}
	}
	return list
}
