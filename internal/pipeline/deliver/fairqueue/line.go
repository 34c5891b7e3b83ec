package fairqueue

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
