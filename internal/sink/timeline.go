package sink

import (
	"sync"
	"time"
)

// A Timeline is how many messages were accepted in each step of time from the
// first one on. The last steps may be missing where nothing came.
type Timeline struct {
	StepMillis int64   `json:"step_ms"`
	Counts     []int64 `json:"counts"`
}

const (
	firstStep = 10 * time.Millisecond
	maxSteps  = 1000 // with one more, steps are made twice as long
)

// timeline counts messages by time, in steps that grow with its length.
type timeline struct {
	mu     sync.Mutex
	start  int64
	step   int64
	counts []int64
}

func (t *timeline) add(now int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.step == 0 {
		t.start, t.step = now, int64(firstStep)
	}
	at := max(0, now-t.start) / t.step // two connections may come in the other order
	for at >= maxSteps {
		t.fold()
		at = (now - t.start) / t.step
	}
	for int64(len(t.counts)) <= at {
		t.counts = append(t.counts, 0)
	}
	t.counts[at]++
}

// fold makes one step of two.
func (t *timeline) fold() {
	t.step *= 2
	half := (len(t.counts) + 1) / 2
	for i := range half {
		n := t.counts[2*i]
		if 2*i+1 < len(t.counts) {
			n += t.counts[2*i+1]
		}
		t.counts[i] = n
	}
	t.counts = t.counts[:half]
}

func (t *timeline) summary() Timeline {
	t.mu.Lock()
	defer t.mu.Unlock()
	return Timeline{StepMillis: t.step / int64(time.Millisecond), Counts: append([]int64(nil), t.counts...)}
}
