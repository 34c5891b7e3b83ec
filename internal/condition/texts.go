package condition

import "fanfare.dev/fanfare/internal/condition/assert"

// textTable keeps each distinct text of the topic's params once, folded too, under
// a number that stays the same while the text is in use. Number 0 is no text.
type textTable struct {
	numbers map[string]uint32
	texts   []internedText
	lists   map[uint32]*internedList // by the number of the text that stands for it
	free    []uint32
}

type internedText struct {
	text, folded string
	count        uint32 // rows that have it
}

// An internedList has the texts of a list, and their numbers without repetition.
type internedList struct {
	values  []any
	numbers []uint32
}

func newTextTable() *textTable {
	return &textTable{numbers: map[string]uint32{}, texts: make([]internedText, 1), lists: map[uint32]*internedList{}}
}

func (t *textTable) at(n uint32) *internedText { return &t.texts[n] }

// size is one more than the highest number of a text.
func (t *textTable) size() int { return len(t.texts) }

// list returns the values of the list with number n.
func (t *textTable) list(n uint32) []any { return t.lists[n].values }

// listNumbers returns the numbers of the texts in the list with number n, without repetition.
func (t *textTable) listNumbers(n uint32) []uint32 { return t.lists[n].numbers }

// number returns the number of text, 0 if no row has it.
func (t *textTable) number(text string) uint32 { return t.numbers[text] }

// acquire returns the number of text for one more row.
func (t *textTable) acquire(text string) uint32 {
	n, ok := t.numbers[text]
	if !ok {
		if last := len(t.free) - 1; last >= 0 {
			n, t.free = t.free[last], t.free[:last]
		} else {
			n = uint32(len(t.texts))
			t.texts = append(t.texts, internedText{})
		}
		t.texts[n] = internedText{text: text}
		t.numbers[text] = n
		if values, ok := readListText(text); ok {
			t.acquireList(n, values)
		} else {
			t.texts[n].folded = fold(text)
		}
	}
	t.texts[n].count++
	assert.That(t.texts[n].text == text && t.numbers[text] == n, "text %d is %q, and %q was asked for", n, t.texts[n].text, text)
	return n
}

// release takes one row away from text n.
func (t *textTable) release(n uint32) {
	one := &t.texts[n]
	assert.That(one.count > 0 && t.numbers[one.text] == n, "text %d is dropped, which nothing has: %q", n, one.text)
	if one.count--; one.count == 0 {
		delete(t.numbers, one.text)
		*one = internedText{}
		if list := t.lists[n]; list != nil {
			delete(t.lists, n)
			for _, text := range list.numbers {
				t.release(text)
			}
		}
		t.free = append(t.free, n)
	}
}

// acquireList takes the texts of a list, each once.
func (t *textTable) acquireList(n uint32, values []any) {
	list := &internedList{values: values}
	seen := make(map[string]struct{}, len(values))
	for _, one := range values {
		text := one.(string)
		if _, again := seen[text]; !again {
			seen[text] = struct{}{}
			list.numbers = append(list.numbers, t.acquire(text))
		}
	}
	t.lists[n] = list
}
