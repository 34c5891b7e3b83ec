package match

// texts keeps each distinct text of the topic's params once, folded too, under
// a number that stays the same while the text is in use. Number 0 is no text.
type texts struct {
	numbers map[string]uint32
	list    []internedText
	free    []uint32
}

type internedText struct {
	text, folded string
	list         []any  // of strings, where the text stands for a list
	count        uint32 // rows that have it
}

func newTexts() *texts {
	return &texts{numbers: map[string]uint32{}, list: make([]internedText, 1)}
}

func (t *texts) at(n uint32) *internedText { return &t.list[n] }

// number returns the number of text, 0 if no row has it.
func (t *texts) number(text string) uint32 { return t.numbers[text] }

// take returns the number of text for one more row.
func (t *texts) take(text string) uint32 {
	n, ok := t.numbers[text]
	if !ok {
		if last := len(t.free) - 1; last >= 0 {
			n, t.free = t.free[last], t.free[:last]
		} else {
			n = uint32(len(t.list))
			t.list = append(t.list, internedText{})
		}
		t.list[n] = intern(text)
		t.numbers[text] = n
	}
	t.list[n].count++
	return n
}

// drop takes one row away from text n.
func (t *texts) drop(n uint32) {
	one := &t.list[n]
	if one.count--; one.count == 0 {
		delete(t.numbers, one.text)
		*one = internedText{}
		t.free = append(t.free, n)
	}
}
