package expr

import (
	"slices"

	"fanfare.dev/fanfare/internal/condition/assert"
	"fanfare.dev/fanfare/internal/condition/lang"
)

// AssertHolds checks that a row has the values that were stored in it.
func (p *ParamPage) AssertHolds(row int, v lang.ParamValues, t *TextTable) {
	held := p.Values(row, t)
	assert.True(slices.Equal(held.Texts, v.Texts), "row %d contains %q instead of %q", row, held.Texts, v.Texts)
	assert.True(slices.Equal(held.Numbers, v.Numbers), "row %d contains %v instead of %v", row, held.Numbers, v.Numbers)
}

// A ParamPage holds the params of the rows of one page by column.
type ParamPage struct {
	Params  []lang.Param
	Numbers [][]float64
	Texts   [][]uint32 // numbers of texts, Booleans and lists in the TextTable
}

// Sub returns the params of a row as CEL's sub.
func (p *ParamPage) Sub(row int, t *TextTable) map[string]any {
	sub := make(map[string]any, len(p.Params))
	for _, one := range p.Params {
		switch one.Kind {
		case lang.KindDouble:
			sub[one.Name] = p.Numbers[one.Column][row]
		case lang.KindString:
			sub[one.Name] = t.At(p.Texts[one.Column][row]).Text
		case lang.KindBool:
			sub[one.Name] = t.At(p.Texts[one.Column][row]).Text == "true"
		case lang.KindList:
			sub[one.Name] = t.list(p.Texts[one.Column][row])
		}
	}
	return sub
}

// Values returns the params of a row.
func (p *ParamPage) Values(row int, t *TextTable) (v lang.ParamValues) {
	for _, column := range p.Numbers {
		v.Numbers = append(v.Numbers, column[row])
	}
	for _, column := range p.Texts {
		v.Texts = append(v.Texts, t.At(column[row]).Text)
	}
	return v
}

// DetachedPage returns a page with one row that holds v.
func DetachedPage(params []lang.Param, v lang.ParamValues, t *TextTable) *ParamPage {
	p := &ParamPage{Params: params}
	for _, number := range v.Numbers {
		p.Numbers = append(p.Numbers, []float64{number})
	}
	for _, text := range v.Texts {
		p.Texts = append(p.Texts, []uint32{t.Acquire(text)})
	}
	return p
}

// TextTable stores each distinct text of the topic's params once, with its folded form, under a
// number that stays the same while a row has the text. Number 0 is no text.
type TextTable struct {
	Numbers map[string]uint32
	texts   []InternedText
	lists   map[uint32]*internedList // by the number of the text that represents the list
	free    []uint32
}

type InternedText struct {
	Text, Folded string
	count        uint32 // of rows that have the text
}

// An internedList holds the texts of a list and their distinct numbers.
type internedList struct {
	values  []any
	numbers []uint32
}

func NewTextTable() *TextTable {
	return &TextTable{Numbers: map[string]uint32{}, texts: make([]InternedText, 1), lists: map[uint32]*internedList{}}
}

func (t *TextTable) At(n uint32) *InternedText { return &t.texts[n] }

// Size is one more than the highest number of a text.
func (t *TextTable) Size() int { return len(t.texts) }

// list returns the values of the list with number n.
func (t *TextTable) list(n uint32) []any { return t.lists[n].values }

// ListNumbers returns the distinct numbers of the texts in the list with number n.
func (t *TextTable) ListNumbers(n uint32) []uint32 { return t.lists[n].numbers }

// Number returns the number of text, 0 if no row has it.
func (t *TextTable) Number(text string) uint32 { return t.Numbers[text] }

// Acquire returns the number of text for one more row.
func (t *TextTable) Acquire(text string) uint32 {
	n, ok := t.Numbers[text]
	if !ok {
		if last := len(t.free) - 1; last >= 0 {
			n, t.free = t.free[last], t.free[:last]
		} else {
			n = uint32(len(t.texts))
			t.texts = append(t.texts, InternedText{})
		}
		t.texts[n] = InternedText{Text: text}
		t.Numbers[text] = n
		if values, ok := lang.ReadListText(text); ok {
			t.acquireList(n, values)
		} else {
			t.texts[n].Folded = lang.Fold(text)
		}
	}
	t.texts[n].count++
	assert.True(t.texts[n].Text == text && t.Numbers[text] == n, "text %d is %q, but %q was requested", n, t.texts[n].Text, text)
	return n
}

// Release releases the number of a text for one row.
func (t *TextTable) Release(n uint32) {
	one := &t.texts[n]
	assert.True(one.count > 0 && t.Numbers[one.Text] == n, "text %d is released, but nothing uses it: %q", n, one.Text)
	if one.count--; one.count == 0 {
		delete(t.Numbers, one.Text)
		*one = InternedText{}
		if list := t.lists[n]; list != nil {
			delete(t.lists, n)
			for _, text := range list.numbers {
				t.Release(text)
			}
		}
		t.free = append(t.free, n)
	}
}

// acquireList acquires each distinct text of a list.
func (t *TextTable) acquireList(n uint32, values []any) {
	list := &internedList{values: values}
	seen := make(map[string]struct{}, len(values))
	for _, one := range values {
		text := one.(string)
		if _, again := seen[text]; !again {
			seen[text] = struct{}{}
			list.numbers = append(list.numbers, t.Acquire(text))
		}
	}
	t.lists[n] = list
}
