package condition

// A paramPage has the params of the rows of one page, by column.
type paramPage struct {
	params  []param
	numbers [][]float64
	texts   [][]uint32 // numbers of texts; booleans and lists too
}

// params returns the params of a row as CEL's sub.
func (p *paramPage) sub(row int, t *textTable) map[string]any {
	sub := make(map[string]any, len(p.params))
	for _, one := range p.params {
		switch one.kind {
		case kindDouble:
			sub[one.name] = p.numbers[one.column][row]
		case kindString:
			sub[one.name] = t.at(p.texts[one.column][row]).text
		case kindBool:
			sub[one.name] = t.at(p.texts[one.column][row]).text == "true"
		case kindList:
			sub[one.name] = t.list(p.texts[one.column][row])
		}
	}
	return sub
}

// values returns the params of a row as they were given.
func (p *paramPage) values(row int, t *textTable) (v paramValues) {
	for _, column := range p.numbers {
		v.numbers = append(v.numbers, column[row])
	}
	for _, column := range p.texts {
		v.texts = append(v.texts, t.at(column[row]).text)
	}
	return v
}

// detachedPage holds the params of one subscription as its row would.
func detachedPage(params []param, v paramValues, t *textTable) *paramPage {
	p := &paramPage{params: params}
	for _, number := range v.numbers {
		p.numbers = append(p.numbers, []float64{number})
	}
	for _, text := range v.texts {
		p.texts = append(p.texts, []uint32{t.acquire(text)})
	}
	return p
}
