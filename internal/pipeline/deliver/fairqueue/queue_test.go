package fairqueue

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// A testItem knows its flow, number and cost.
type testItem struct{ flow, number, cost int }

const mostCost = 20

func drawCost(t *rapid.T) int { return rapid.IntRange(1, mostCost).Draw(t, "cost") }

func TestEachItemLeavesOnceInTheOrderOfItsFlow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q := New[int, testItem](rapid.IntRange(1, 2*mostCost).Draw(t, "quantum"))
		model := map[int][]testItem{}
		var last *testItem // popped by the previous step
		number, waiting := 0, 0
		pop := func(t *rapid.T, may func(int) bool) {
			flow, got, ok := q.PopAllowed(may)
			some := false
			for key, items := range model {
				some = some || len(items) > 0 && may(key)
			}
			if ok != some {
				t.Fatalf("popped %v, and something may leave: %v", ok, some)
			}
			if last = nil; !ok {
				return
			}
			if flow != got.flow || !may(flow) || got != model[flow][0] {
				t.Fatalf("popped %+v of flow %d, whose first is %+v", got, flow, model[flow][0])
			}
			model[flow] = model[flow][1:]
			last = &got
			waiting--
		}
		t.Repeat(map[string]func(*rapid.T){
			"push": func(t *rapid.T) {
				number++
				p := testItem{rapid.IntRange(0, 5).Draw(t, "flow"), number, drawCost(t)}
				q.Push(p.flow, p, p.cost)
				model[p.flow] = append(model[p.flow], p)
				last = nil
				waiting++
			},
			"pop": func(t *rapid.T) { pop(t, func(int) bool { return true }) },
			"pop of some": func(t *rapid.T) {
				some := rapid.IntRange(0, 63).Draw(t, "flows")
				pop(t, func(flow int) bool { return some&(1<<flow) != 0 })
			},
			"pop like": func(t *rapid.T) {
				flow, rest := rapid.IntRange(0, 5).Draw(t, "flow"), rapid.IntRange(0, 2).Draw(t, "rest")
				like := func(p testItem) bool { return p.number%3 == rest }
				got, ok := q.PopIf(flow, like)
				if some := len(model[flow]) > 0 && like(model[flow][0]); ok != some {
					t.Fatalf("popped %v, and the first of the flow is like that: %v", ok, some)
				}
				if last = nil; !ok {
					return
				}
				if got != model[flow][0] {
					t.Fatalf("popped %+v of flow %d, whose first is %+v", got, flow, model[flow][0])
				}
				model[flow] = model[flow][1:]
				waiting--
			},
			"unpop": func(t *rapid.T) {
				if last == nil {
					return
				}
				back := *last
				q.PushFront(back.flow, back, back.cost)
				model[back.flow] = slices.Insert(slices.Clone(model[back.flow]), 0, back)
				waiting++
				pop(t, func(int) bool { return true })
				if last == nil || *last != back {
					t.Fatalf("%+v went back in front, and %+v is next", back, last)
				}
			},
			"remove": func(t *rapid.T) {
				rest := rapid.IntRange(0, 2).Draw(t, "rest")
				gone := func(p testItem) bool { return p.number%3 == rest }
				removed := q.Remove(gone)
				for _, p := range removed {
					if at := slices.Index(model[p.flow], p); at < 0 || !gone(p) {
						t.Fatalf("removed %+v", p)
					}
				}
				waiting -= len(removed)
				for flow := range model {
					model[flow] = slices.DeleteFunc(slices.Clone(model[flow]), gone)
				}
				last = nil
			},
			"": func(t *rapid.T) {
				flows := 0
				for _, items := range model {
					if len(items) > 0 {
						flows++
					}
				}
				if q.Len() != waiting || q.Flows() != flows {
					t.Fatalf("%d items in %d flows, want %d in %d", q.Len(), q.Flows(), waiting, flows)
				}
			},
		})
	})
}

// TestNoFlowGetsMoreThanItsShare has flows that always have items: the costs that two of
// them were given differ by at most a quantum and two of the largest items.
func TestNoFlowGetsMoreThanItsShare(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		quantum := rapid.IntRange(1, 2*mostCost).Draw(t, "quantum")
		q := New[int, int](quantum)
		given := make([]int, rapid.IntRange(2, 6).Draw(t, "flows"))
		for flow := range given {
			for range 300 {
				cost := drawCost(t)
				q.Push(flow, cost, cost)
			}
		}
		for range 300 {
			flow, cost, _ := q.PopAllowed(func(int) bool { return true })
			given[flow] += cost
			if most, least := slices.Max(given), slices.Min(given); most-least > quantum+2*mostCost {
				t.Fatalf("given were %v with a quantum of %d", given, quantum)
			}
		}
	})
}

// TestNewFlowIsServedWithinABound adds a flow to others with many items: it waits for as
// many turns of each as its item needs quanta, and a turn costs at most a quantum, apart
// from the excess of one item.
func TestNewFlowIsServedWithinABound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		quantum := rapid.IntRange(1, 2*mostCost).Draw(t, "quantum")
		q := New[int, int](quantum)
		others := rapid.IntRange(1, 6).Draw(t, "others")
		for flow := range others {
			for range 400 {
				cost := drawCost(t)
				q.Push(flow, cost, cost)
			}
		}
		for range rapid.IntRange(0, 100).Draw(t, "before") {
			q.Pop()
		}
		cost := drawCost(t)
		q.Push(others, cost, cost)
		turns := (cost + quantum - 1) / quantum
		given := make([]int, others+1)
		for given[others] == 0 {
			flow, cost, _ := q.PopAllowed(func(int) bool { return true })
			given[flow] += cost
		}
		for flow, sum := range given[:others] {
			if most := turns*quantum + mostCost - 1; sum > most {
				t.Fatalf("flow %d was given %d before one that came with an item of %d, at most %d is its due (quantum %d)", flow, sum, cost, most, quantum)
			}
		}
	})
}

func TestChargeIsPaidLater(t *testing.T) {
	q := New[string, int](1)
	for i := range 10 {
		q.Push("large", i, 1)
		q.Push("small", i, 1)
	}
	flow, _, _ := q.PopAllowed(func(string) bool { return true })
	q.Charge(flow, 3)
	q.Charge("nobody", 1000)
	var order []string
	for range 6 {
		flow, _, _ := q.PopAllowed(func(string) bool { return true })
		order = append(order, flow)
	}
	if want := []string{"small", "small", "small", "small", "large", "small"}; flow != "large" || !slices.Equal(order, want) {
		t.Errorf("%s was charged, and then left %v, want %v", flow, order, want)
	}
}

// BenchmarkTurns measures a turn with many flows.
func BenchmarkTurns(b *testing.B) {
	q := New[int, *int](1)
	for flow := range 1000 {
		q.Push(flow, nil, 1)
		q.Push(flow, nil, 1)
	}
	b.ReportAllocs()
	for b.Loop() {
		flow, v, _ := q.PopAllowed(func(int) bool { return true })
		q.Push(flow, v, 1)
	}
}

func TestFlowPaysForItemsTakenOutOfTurn(t *testing.T) {
	q := New[string, int](1)
	for i := range 20 {
		q.Push("a", i, 1)
		q.Push("b", i, 1)
	}
	for range 5 {
		q.PopIf("a", func(int) bool { return true })
	}
	given := map[string]int{"a": 5, "b": 0}
	for range 15 {
		flow, _, _ := q.PopAllowed(func(string) bool { return true })
		given[flow]++
	}
	if given["a"] != 10 || given["b"] != 10 {
		t.Errorf("of the first 20, %v were of each flow, want 10", given)
	}
}

func TestCountIfStopsAtTheFirstOtherItem(t *testing.T) {
	q := New[string, int](1)
	for _, item := range []int{2, 4, 6, 7, 8} {
		q.Push("a", item, 1)
	}
	q.Push("b", 2, 1)
	even := func(n int) bool { return n%2 == 0 }
	for most, want := range map[int]int{0: 0, 2: 2, 3: 3, 100: 3} {
		if n := q.CountIf("a", even, most); n != want {
			t.Errorf("of %d at most %d are counted, want %d", most, n, want)
		}
	}
	if n := q.CountIf("c", even, 10); n != 0 {
		t.Errorf("%d are counted of a flow that has nothing", n)
	}
	q.PopIf("a", even)
	if n := q.CountIf("a", even, 10); n != 2 || q.Len() != 5 {
		t.Errorf("%d are counted behind one that left, and %d wait", n, q.Len())
	}
}

func TestFifoKeepsOrderAndTakesItemsBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var l fifo[int]
		var model, out []int
		next := 0
		t.Repeat(map[string]func(*rapid.T){
			"push": func(t *rapid.T) {
				for range rapid.SampledFrom([]int{1, 3, 5000}).Draw(t, "n") {
					next++
					l.push(next)
					model = append(model, next)
				}
			},
			"pop": func(t *rapid.T) {
				for range min(len(model), rapid.SampledFrom([]int{1, 2, 4500}).Draw(t, "n")) {
					if first := *l.first(); first != model[0] {
						t.Fatalf("%d is first, want %d", first, model[0])
					}
					if got := l.pop(); got != model[0] {
						t.Fatalf("popped %d, want %d", got, model[0])
					}
					model, out = model[1:], append(out, model[0])
				}
			},
			"unpop": func(t *rapid.T) {
				if len(out) == 0 {
					return
				}
				back := out[len(out)-1]
				out = out[:len(out)-1]
				l.pushFront(back)
				model = slices.Insert(slices.Clone(model), 0, back)
			},
			"": func(t *rapid.T) {
				if l.len() != len(model) {
					t.Fatalf("%d items, want %d", l.len(), len(model))
				}
			},
		})
	})
}

func TestFifoReleasesRemovedItems(t *testing.T) {
	var l fifo[*int]
	for range 10_000 {
		l.push(new(int))
	}
	for range 6000 {
		l.pop()
	}
	for i, item := range l.items[:cap(l.items)] {
		if held := i >= l.head && i < len(l.items); !held && item != nil {
			t.Fatalf("place %d still holds an item that left (head %d, len %d)", i, l.head, len(l.items))
		}
	}
}
