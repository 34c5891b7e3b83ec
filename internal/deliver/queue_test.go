package deliver

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestQueueIsFirstInFirstOutAndTakesBackAtTheFront(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var q jobQueue
		var model, out []*Job
		t.Repeat(map[string]func(*rapid.T){
			"push": func(t *rapid.T) {
				for range rapid.SampledFrom([]int{1, 3, 5000}).Draw(t, "n") {
					job := &Job{}
					q.push(job)
					model = append(model, job)
				}
			},
			"pop": func(t *rapid.T) {
				for range rapid.SampledFrom([]int{1, 2, 4500}).Draw(t, "n") {
					got := q.pop()
					if len(model) == 0 {
						if got != nil {
							t.Fatal("an empty queue gave a job")
						}
						return
					}
					if got != model[0] {
						t.Fatalf("popped %p, want %p", got, model[0])
					}
					model, out = model[1:], append(out, got)
				}
			},
			"unpop": func(t *rapid.T) {
				if len(out) == 0 {
					return
				}
				job := out[len(out)-1]
				out = out[:len(out)-1]
				q.unpop(job)
				model = slices.Insert(slices.Clone(model), 0, job)
			},
			"": func(t *rapid.T) {
				if q.len() != len(model) {
					t.Fatalf("%d jobs, want %d", q.len(), len(model))
				}
			},
		})
	})
}

func TestQueueForgetsWhatLeftIt(t *testing.T) {
	var q jobQueue
	for range 10_000 {
		q.push(&Job{})
	}
	for range 6000 {
		q.pop()
	}
	for i, job := range q.jobs[:cap(q.jobs)] {
		if held := i >= q.head && i < len(q.jobs); !held && job != nil {
			t.Fatalf("place %d still holds a job that left (head %d, len %d)", i, q.head, len(q.jobs))
		}
	}
}
