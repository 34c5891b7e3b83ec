package fairqueue

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestALineIsFirstInFirstOutAndTakesBackAtTheFront(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var l line[int]
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
				l.unpop(back)
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

func TestALineForgetsWhatLeftIt(t *testing.T) {
	var l line[*int]
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
