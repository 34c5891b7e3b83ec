// Package fair hands out what waits in several flows, each of which gets its
// turn: deficit round robin (Shreedhar and Varghese, 1995). A flow has a credit
// that grows by a quantum each turn and pays for what it is given; who has much
// to give waits no longer than who has little, and a turn costs a few steps
// however many flows there are.
//
// State. What waits, and the credit of each flow that has something waiting. A
// flow that has nothing is forgotten: it saves up nothing while it is away.
//
// Failure. None: a queue is a value in memory. It is for one goroutine, or under
// its owner's lock, and does not bound itself; who pushes does.
package fairqueue

// A Queue has flows of type K with items of type T.
type Queue[K comparable, T any] struct {
	quantum int
	flows   map[K]*flow[K, T]
	next    *flow[K, T] // whose turn it is, in a ring of all that have something
	len     int
	spare   []*flow[K, T]
}

// A flow is what waits of one key.
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

// maxSpare is how many flows that were forgotten are kept to be used again.
const maxSpare = 64

// New returns an empty queue. The quantum is what a flow may take each turn, at
// least 1: with one as large as the largest cost, each turn gives something;
// with a smaller one, what costs less than others comes sooner.
func New[K comparable, T any](quantum int) *Queue[K, T] {
	return &Queue[K, T]{quantum: max(1, quantum), flows: map[K]*flow[K, T]{}}
}

// Len is how many items wait.
func (q *Queue[K, T]) Len() int { return q.len }

// Flows is how many flows have something.
func (q *Queue[K, T]) Flows() int { return len(q.flows) }

// Push puts an item behind the others of its flow.
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

// PushFront puts an item that was popped last back in front: it is the next, or where
// PopLike took it, the next of its flow.
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

// Pop takes the next item of the flow whose turn it is.
func (q *Queue[K, T]) Pop() (value T, ok bool) {
	_, value, ok = q.PopAllowed(func(K) bool { return true })
	return value, ok
}

// PopAllowed is Pop that passes over the flows that may not, which lose nothing by it.
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

// PopIf takes the first item of a flow, before its turn, if it is like what is
// wanted. The flow pays for it: its next turn is later.
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

// CountIf is how many items in a row, from the first of a flow on, are like what is
// wanted; it counts no more than most.
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

// Charge takes from the credit of a flow what an item that it was given turned
// out to cost besides. A flow that has nothing waiting owes nothing.
func (q *Queue[K, T]) Charge(key K, cost int) {
	if f := q.flows[key]; f != nil {
		f.credit -= cost
	}
}

// Remove takes out the items for which gone is true, and returns them. The others
// keep their order.
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

// newFlow makes the flow of a key, which is in no ring yet.
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

// removeFlow forgets a flow that has nothing.
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

// A line is a first-in first-out queue that also takes an item back at its
// front.
type fifo[T any] struct {
	items []T
	head  int
}

func (l *fifo[T]) len() int { return len(l.items) - l.head }

func (l *fifo[T]) push(item T) { l.items = append(l.items, item) }

// first is the next one to leave. There is one.
func (l *fifo[T]) first() *T { return &l.items[l.head] }

// pop takes the first out. There is one.
func (l *fifo[T]) pop() T {
	var none T
	item := l.items[l.head]
	l.items[l.head] = none
	l.head++
	if l.head == len(l.items) {
		l.items, l.head = l.items[:0], 0
	} else if l.head >= 4096 {
		n := copy(l.items, l.items[l.head:])
		clear(l.items[n:]) // or they would keep what they hold
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
