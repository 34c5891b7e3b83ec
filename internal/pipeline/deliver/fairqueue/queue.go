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
	turn    *flow[K, T] // whose turn it is, in a ring of all that have something
	len     int
	spare   []*flow[K, T]
}

// A flow is what waits of one key.
type flow[K comparable, T any] struct {
	key        K
	items      line[priced[T]]
	credit     int
	next, prev *flow[K, T]
}

type priced[T any] struct {
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
		f = q.begin(key)
		if q.turn == nil {
			q.turn, f.next, f.prev = f, f, f
		} else {
			f.insert(q.turn) // behind all others
		}
	}
	f.items.push(priced[T]{value, cost})
	q.len++
}

// Unpop puts an item that was popped last back in front: it is the next, or where
// PopLike took it, the next of its flow.
func (q *Queue[K, T]) Unpop(key K, value T, cost int) {
	f := q.flows[key]
	if f == nil {
		f = q.begin(key)
		f.credit = 0
		f.next, f.prev = f, f
		if q.turn != nil {
			f.insert(q.turn)
		}
	}
	f.items.unpop(priced[T]{value, cost})
	f.credit += cost
	q.turn = f
	q.len++
}

// Pop takes the next item of the flow whose turn it is.
func (q *Queue[K, T]) Pop() (value T, ok bool) {
	_, value, ok = q.PopOf(func(K) bool { return true })
	return value, ok
}

// PopOf is Pop that passes over the flows that may not, which lose nothing by it.
func (q *Queue[K, T]) PopOf(may func(K) bool) (key K, value T, ok bool) {
	for passed := 0; passed < len(q.flows); {
		f := q.turn
		if !may(f.key) {
			passed++
			q.turn = f.next
			continue
		}
		passed = 0
		cost := f.items.first().cost
		if f.credit < cost {
			f.credit += q.quantum
			q.turn = f.next
			continue
		}
		f.credit -= cost
		item := f.items.pop()
		q.len--
		if f.items.len() == 0 {
			q.end(f)
		}
		return f.key, item.value, true
	}
	return key, value, false
}

// PopLike takes the first item of a flow, before its turn, if it is like what is
// wanted. The flow pays for it: its next turn is later.
func (q *Queue[K, T]) PopLike(key K, like func(T) bool) (value T, ok bool) {
	f := q.flows[key]
	if f == nil || !like(f.items.first().value) {
		return value, false
	}
	item := f.items.pop()
	f.credit -= item.cost
	q.len--
	if f.items.len() == 0 {
		q.end(f)
	}
	return item.value, true
}

// CountLike is how many items in a row, from the first of a flow on, are like what is
// wanted; it counts no more than most.
func (q *Queue[K, T]) CountLike(key K, like func(T) bool, most int) (n int) {
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
	for _, f := range q.inTurn() {
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
			q.end(f)
		}
	}
	return removed
}

func (q *Queue[K, T]) inTurn() []*flow[K, T] {
	all := make([]*flow[K, T], 0, len(q.flows))
	for f := q.turn; len(all) < len(q.flows); f = f.next {
		all = append(all, f)
	}
	return all
}

// begin makes the flow of a key, which is in no ring yet.
func (q *Queue[K, T]) begin(key K) *flow[K, T] {
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

// end forgets a flow that has nothing.
func (q *Queue[K, T]) end(f *flow[K, T]) {
	delete(q.flows, f.key)
	if q.turn == f {
		q.turn = f.next
	}
	if q.turn == f {
		q.turn = nil
	}
	f.prev.next, f.next.prev = f.next, f.prev
	f.next, f.prev = nil, nil
	if len(q.spare) < maxSpare {
		q.spare = append(q.spare, f)
	}
}

// A line is a first-in first-out queue that also takes an item back at its
// front.
type line[T any] struct {
	items []T
	head  int
}

func (l *line[T]) len() int { return len(l.items) - l.head }

func (l *line[T]) push(item T) { l.items = append(l.items, item) }

// first is the next one to leave. There is one.
func (l *line[T]) first() *T { return &l.items[l.head] }

// pop takes the first out. There is one.
func (l *line[T]) pop() T {
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

func (l *line[T]) unpop(item T) {
	if l.head > 0 {
		l.head--
		l.items[l.head] = item
		return
	}
	l.items = append([]T{item}, l.items...)
}
