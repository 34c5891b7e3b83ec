package syntax

import (
	"slices"
	"strings"
)

func (d *decoder) store() any {
	a := &Store{Set: d.numSet()}
	d.space()
	if d.peek() == '(' {
		d.list(func() {
			if name := d.keyword(); name != "UNCHANGEDSINCE" {
				d.fail("the modifier %s is not known", name)
				return
			}
			d.space()
			n := d.number()
			a.UnchangedSince = &n
		})
		d.space()
	}
	if c := d.peek(); c == '+' || c == '-' {
		a.Mode = c
		d.i++
	}
	switch name := d.keyword(); name {
	case "FLAGS":
	case "FLAGS.SILENT":
		a.Silent = true
	default:
		d.fail("the item %s cannot be stored", name)
	}
	d.space()
	if d.peek() == '(' {
		a.Flags = d.flags()
		return a
	}
	for d.ok() { // RFC 3501 permits flags without parentheses
		f := d.flag()
		if f == "" {
			d.fail("a flag is missing")
		}
		a.Flags = append(a.Flags, f)
		if len(a.Flags) > maxElements {
			d.fail("there are more than %d flags", maxElements)
		}
		if !d.more() {
			break
		}
	}
	return a
}

var macros = map[string][]string{
	"ALL":  {ItemFlags, ItemInternalDate, ItemRFC822Size, ItemEnvelope},
	"FAST": {ItemFlags, ItemInternalDate, ItemRFC822Size},
	"FULL": {ItemFlags, ItemInternalDate, ItemRFC822Size, ItemEnvelope, ItemBody},
}

func (d *decoder) fetch() any {
	a := &Fetch{Set: d.numSet()}
	d.space()
	if d.peek() == '(' {
		d.list(func() { a.Items = append(a.Items, d.fetchItem()) })
	} else {
		from := d.i
		if macro := macros[strings.ToUpper(d.run(isAtomChar))]; macro != nil {
			for _, kind := range macro {
				a.Items = append(a.Items, FetchItem{Kind: kind})
			}
		} else {
			d.i = min(from, len(d.b))
			a.Items = []FetchItem{d.fetchItem()}
		}
	}
	if d.ok() && len(a.Items) == 0 {
		d.fail("an item is missing")
	}
	if !d.more() {
		return a
	}
	d.list(func() {
		switch name := d.keyword(); name {
		case "CHANGEDSINCE":
			d.space()
			n := d.number()
			a.ChangedSince = &n
		case "VANISHED":
			a.Vanished = true
		default:
			d.fail("the modifier %s is not known", name)
		}
	})
	return a
}

var simpleItems = []string{
	ItemEnvelope, ItemFlags, ItemInternalDate, ItemRFC822, ItemRFC822Header, ItemRFC822Size, ItemRFC822Text, ItemBodyStructure, ItemUID, ItemModSeq, ItemEmailID, ItemThreadID, ItemSaveDate,
}

func (d *decoder) fetchItem() (item FetchItem) {
	name := strings.ToUpper(d.run(func(c byte) bool { return isAtomChar(c) && c != '[' && c != '<' }))
	switch name {
	case "BODY", "BODY.PEEK":
		if name == "BODY" && d.peek() != '[' {
			item.Kind = ItemBody
			return item
		}
		item.Kind, item.Peek = ItemSection, name == "BODY.PEEK"
		item.Section = d.section(true)
		item.Partial = d.partial()
	case "BINARY", "BINARY.PEEK":
		item.Kind, item.Peek = ItemBinary, name == "BINARY.PEEK"
		item.Section = d.section(false)
		item.Partial = d.partial()
	case "BINARY.SIZE":
		item.Kind, item.Peek = ItemBinarySize, true
		item.Section = d.section(false)
	default:
		if !slices.Contains(simpleItems, name) {
			d.fail("the item %q is not known", name)
		}
		item.Kind = name
	}
	return item
}

const maxParts = 100 // numbers of a section

// section reads a section in brackets. Only sections of BODY can have a text such as HEADER.
func (d *decoder) section(text bool) (s Section) {
	d.need('[')
	if d.take(']') {
		return s
	}
	for c := d.peek(); d.ok() && c >= '0' && c <= '9'; c = d.peek() {
		s.Part = append(s.Part, int(d.nonZero()))
		if len(s.Part) > maxParts {
			d.fail("a section has more than %d numbers", maxParts)
		}
		if !d.take('.') {
			d.need(']')
			return s
		}
	}
	s.Of = strings.ToUpper(d.run(func(c byte) bool { return isAtomChar(c) }))
	switch {
	case !text:
		d.fail("the section is not valid")
	case s.Of == "HEADER", s.Of == "TEXT", s.Of == "MIME" && len(s.Part) > 0:
	case s.Of == "HEADER.FIELDS", s.Of == "HEADER.FIELDS.NOT":
		d.space()
		d.list(func() { s.Fields = append(s.Fields, d.astring()) })
		if d.ok() && len(s.Fields) == 0 {
			d.fail("a field name is missing")
		}
	default:
		d.fail("the section is not valid")
	}
	d.need(']')
	return s
}

func (d *decoder) partial() *Partial {
	if !d.take('<') {
		return nil
	}
	p := &Partial{Offset: int64(d.number())}
	d.need('.')
	p.Length = int64(d.number())
	d.need('>')
	return p
}
