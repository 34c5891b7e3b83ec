// Package fairqueue is a queue in which flows take turns: deficit round robin (Shreedhar
// and Varghese, 1995). Each turn adds a quantum to the credit of a flow, and each item
// costs credit. A flow with many items therefore does not delay a flow with few, and the cost
// of a turn does not depend on the number of flows. Package deliver queues jobs in it, and the
// dispatch stage batches.
//
// State. The waiting items, and the credit of each flow that has items. A flow without items is
// removed, so it cannot save credit.
//
// A Queue is not safe for concurrent use, and does not limit its length.
package fairqueue

// A Queue holds items of type T in flows with keys of type K.
type Queue[K comparable, T any] struct {
	quantum int
	flows   map[K]*flow[K, T]
	next    *flow[K, T] // in a ring of all flows with items
	len     int
	spare   []*flow[K, T]
}

// A flow holds the items of one key.
type flow[K comparable, T any] struct {
	key        K
	items      fifo[costed[T]]
	credit     int
	next, prev *flow[K, T]
}

type costed[T any] struct {
	value T
	cost  int
}

// maxSpare is the maximum number of unused flows that are retained for reuse.
const maxSpare = 64

// New returns an empty queue. The quantum is the credit that a flow gets each turn, at
// least 1. With a quantum of the largest cost, every turn yields an item; with a smaller
// one, cheap items come sooner.
func New[K comparable, T any](quantum int) *Queue[K, T] {
	return &Queue[K, T]{quantum: max(1, quantum), flows: map[K]*flow[K, T]{}}
}

// Len returns the number of items.
func (q *Queue[K, T]) Len() int { return q.len }

// Flows returns the number of flows with items.
func (q *Queue[K, T]) Flows() int { return len(q.flows) }

// Push appends an item to its flow.
func (q *Queue[K, T]) Push(key K, value T, cost int) {
	f := q.flows[key]
	if f == nil {
		f = q.newFlow(key)
		if q.next == nil {
			q.next, f.next, f.prev = f, f, f
		} else {
			f.insert(q.next) // behind all others
		}
	}
	f.items.push(costed[T]{value, cost})
	q.len++
}

// PushFront puts back the item that was popped last: it is the next item or, if PopIf
// returned it, the next of its flow.
func (q *Queue[K, T]) PushFront(key K, value T, cost int) {
	f := q.flows[key]
	if f == nil {
		f = q.newFlow(key)
		f.credit = 0
		f.next, f.prev = f, f
		if q.next != nil {
			f.insert(q.next)
		}
	}
	f.items.pushFront(costed[T]{value, cost})
	f.credit += cost
	q.next = f
	q.len++
}

// Pop returns the next item.
func (q *Queue[K, T]) Pop() (value T, ok bool) {
	_, value, ok = q.PopAllowed(func(K) bool { return true })
	return value, ok
}

// PopAllowed returns the next item of the flows for which may returns true. The others do
// not lose their turn.
func (q *Queue[K, T]) PopAllowed(may func(K) bool) (key K, value T, ok bool) {
	for passed := 0; passed < len(q.flows); {
		f := q.next
		if !may(f.key) {
			passed++
			q.next = f.next
			continue
		}
		passed = 0
		cost := f.items.first().cost
		if f.credit < cost {
			f.credit += q.quantum
			q.next = f.next
			continue
		}
		f.credit -= cost
		item := f.items.pop()
		q.len--
		if f.items.len() == 0 {
			q.removeFlow(f)
		}
		return f.key, item.value, true
	}
	return key, value, false
}

// PopIf returns the first item of a flow, out of turn, if like returns true for it. The
// flow pays for it and gets its next turn later.
func (q *Queue[K, T]) PopIf(key K, like func(T) bool) (value T, ok bool) {
	f := q.flows[key]
	if f == nil || !like(f.items.first().value) {
		return value, false
	}
	item := f.items.pop()
	f.credit -= item.cost
	q.len--
	if f.items.len() == 0 {
		q.removeFlow(f)
	}
	return item.value, true
}

// CountIf returns for how many items in a row, from the first of a flow, like returns true;
// at most most.
func (q *Queue[K, T]) CountIf(key K, like func(T) bool, most int) (n int) {
	f := q.flows[key]
	if f == nil {
		return 0
	}
	for most = min(most, f.items.len()); n < most && like(f.items.items[f.items.head+n].value); {
		n++
	}
	return n
}

// Charge takes credit from a flow for an item that cost more than expected. It has no
// effect on a flow without items.
func (q *Queue[K, T]) Charge(key K, cost int) {
	if f := q.flows[key]; f != nil {
		f.credit -= cost
	}
}

// Remove removes and returns the items for which gone returns true. The others keep their
// order.
func (q *Queue[K, T]) Remove(gone func(T) bool) (removed []T) {
	for _, f := range q.ordered() {
		for range f.items.len() {
			item := f.items.pop()
			if !gone(item.value) {
				f.items.push(item)
				continue
			}
			removed = append(removed, item.value)
			q.len--
		}
		if f.items.len() == 0 {
			q.removeFlow(f)
		}
	}
	return removed
}

func (q *Queue[K, T]) ordered() []*flow[K, T] {
	all := make([]*flow[K, T], 0, len(q.flows))
	for f := q.next; len(all) < len(q.flows); f = f.next {
		all = append(all, f)
	}
	return all
}

// newFlow creates the flow of a key, outside the ring.
func (q *Queue[K, T]) newFlow(key K) *flow[K, T] {
	f := &flow[K, T]{}
	if n := len(q.spare); n > 0 {
		f, q.spare = q.spare[n-1], q.spare[:n-1]
	}
	f.key, f.credit = key, q.quantum
	q.flows[key] = f
	return f
}

// insert puts a flow into the ring, in front of another.
func (f *flow[K, T]) insert(before *flow[K, T]) {
	f.next, f.prev = before, before.prev
	f.prev.next, f.next.prev = f, f
}

// removeFlow removes a flow without items.
func (q *Queue[K, T]) removeFlow(f *flow[K, T]) {
	delete(q.flows, f.key)
	if q.next == f {
		q.next = f.next
	}
	if q.next == f {
		q.next = nil
	}
	f.prev.next, f.next.prev = f.next, f.prev
	f.next, f.prev = nil, nil
	if len(q.spare) < maxSpare {
		q.spare = append(q.spare, f)
	}
}

// A fifo is a first-in first-out queue that can take an item back at its front.
type fifo[T any] struct {
	items []T
	head  int
}

func (l *fifo[T]) len() int { return len(l.items) - l.head }

func (l *fifo[T]) push(item T) { l.items = append(l.items, item) }

// first returns the first item. The queue must not be empty.
func (l *fifo[T]) first() *T { return &l.items[l.head] }

// pop removes and returns the first item. The queue must not be empty.
func (l *fifo[T]) pop() T {
	var none T
	item := l.items[l.head]
	l.items[l.head] = none
	l.head++
	if l.head == len(l.items) {
		l.items, l.head = l.items[:0], 0
	} else if l.head >= 4096 {
		n := copy(l.items, l.items[l.head:])
		clear(l.items[n:]) // so that the items can be collected
		l.items, l.head = l.items[:n], 0
	}
	return item
}

func (l *fifo[T]) pushFront(item T) {
	if l.head > 0 {
		l.head--
		l.items[l.head] = item
		return
	}
	l.items = append([]T{item}, l.items...)
}
