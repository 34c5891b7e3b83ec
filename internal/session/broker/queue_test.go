package broker

import (
	"math/rand/v2"
	"testing"
)

func TestAnsweredIsTheSetOfItsNumbers(t *testing.T) {
	for seed := range uint64(50) {
		random := rand.New(rand.NewPCG(seed, 1)) // #nosec G404 -- a test needs reproducible numbers
		start := random.Uint64N(300)
		set, want := restoredAnswered(start), map[uint64]bool{}
		for n := range start + 1 {
			want[n] = true
		}
		for range 2000 {
			n := random.Uint64N(1500) + 1
			if random.IntN(3) == 0 {
				n = set.floor + 1 + random.Uint64N(3)
			}
			set.add(n)
			want[n] = true
			floor := start
			for want[floor+1] {
				floor++
			}
			if set.floor != floor {
				t.Fatalf("seed %d: the floor is %d after %d, want %d", seed, set.floor, n, floor)
			}
		}
		for n := range uint64(1600) {
			if set.has(n) != want[n] {
				t.Fatalf("seed %d: has(%d) is %v", seed, n, set.has(n))
			}
		}
	}
}

func TestQueueKeepsTheOrder(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 7)) // #nosec G404 -- a test needs reproducible numbers
	var q queue
	var want []uint64
	for i := range uint64(100_000) {
		switch random.IntN(5) {
		case 0, 1:
			q.pushBack(request{number: i, record: make([]byte, 3)})
			want = append(want, i)
		case 2:
			q.pushFront(request{number: i, record: make([]byte, 3)})
			want = append([]uint64{i}, want...)
		default:
			if q.n == 0 {
				continue
			}
			if r := q.pop(); r.number != want[0] {
				t.Fatalf("step %d: popped %d, want %d", i, r.number, want[0])
			}
			want = want[1:]
		}
		if q.n != len(want) || q.bytes != int64(3*len(want)) {
			t.Fatalf("step %d: %d requests with %d bytes, want %d", i, q.n, q.bytes, len(want))
		}
	}
}
