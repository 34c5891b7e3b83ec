package bodies

import (
	"bytes"
	"cmp"
	"html"
	"slices"
	"strings"

	markup "golang.org/x/net/html"
)

// inline puts what the style sheets in the HTML say into the style attributes of
// its elements, since some readers of mail drop sheets. What is not of an element
// itself (how a narrow or a dark screen differs, what is under a pointer) stays in
// the sheet. A sheet with tags of Liquid is left alone. A library would read the
// HTML as a tree and write it anew, which Liquid between and within elements does
// not survive; here all but the start tags concerned stays as it was written.
func (b *builder) inline(source, builtin string) string {
	rules, _ := sheet(builtin, 0)
	source, rules = b.sheets(source, rules)
	if len(rules) == 0 {
		return source
	}
	var out bytes.Buffer
	var open []element
	z := markup.NewTokenizer(strings.NewReader(source))
	for {
		kind := z.Next()
		if kind == markup.ErrorToken {
			return out.String()
		}
		raw := slices.Clone(z.Raw()) // the token is read after it, in place
		switch kind {
		case markup.StartTagToken, markup.SelfClosingTagToken:
			t := z.Token()
			open = imply(open, t.Data)
			open = append(open, elementOf(t))
			if styled := b.styled(t, open, rules); styled != "" {
				raw = []byte(styled)
			}
			if void[t.Data] {
				open = open[:len(open)-1]
			}
		case markup.EndTagToken:
			name, _ := z.TagName()
			open = closed(open, string(name))
		}
		out.Write(raw)
	}
}

// sheets takes the rules that can be inlined out of the style elements.
func (b *builder) sheets(source string, rules []rule) (string, []rule) {
	var out strings.Builder
	z := markup.NewTokenizer(strings.NewReader(source))
	inStyle := false
	for {
		kind := z.Next()
		if kind == markup.ErrorToken {
			break
		}
		raw := string(z.Raw())
		switch kind {
		case markup.StartTagToken:
			name, more := z.TagName()
			inStyle = string(name) == "style"
			for more {
				var key []byte
				if key, _, more = z.TagAttr(); string(key) == "media" {
					inStyle = false
				}
			}
		case markup.EndTagToken:
			inStyle = false
		case markup.TextToken:
			if inStyle && !b.tagged(raw) {
				var found []rule
				found, raw = sheet(raw, len(rules)+1)
				rules = append(rules, found...)
			}
		}
		out.WriteString(raw)
	}
	return strings.NewReplacer("<style></style>", "", "<style>\n</style>", "").Replace(out.String()), rules
}

// tagged reports whether there are tags of Liquid in the text.
func (b *builder) tagged(text string) bool {
	return slices.ContainsFunc(b.word.FindAllString(text, -1), func(w string) bool { return b.at(w).tag != "" })
}

func elementOf(t markup.Token) element {
	return element{t.Data, attribute(t, "id"), strings.Fields(attribute(t, "class"))}
}

// imply closes the elements that end where another begins.
func imply(open []element, name string) []element {
	ends := map[string]string{"li": "li", "td": "td th", "th": "td th", "tr": "td th tr", "dt": "dt dd", "dd": "dt dd", "tbody": "td th tr thead tbody"}[name]
	if blocks[name] && ends == "" {
		ends = "p"
	}
	for n := len(open); n > 0 && strings.Contains(" "+ends+" ", " "+open[n-1].name+" "); n-- {
		open = open[:n-1]
	}
	return open
}

// closed is what is open behind the end of an element.
func closed(open []element, name string) []element {
	for i, e := range slices.Backward(open) {
		if e.name == name {
			return open[:i]
		}
	}
	return open
}

// styled is the start tag with the rules that are of it, "" without any.
func (b *builder) styled(t markup.Token, open []element, rules []rule) string {
	var of []rule
	for _, r := range rules {
		if r.selector.matches(open) {
			of = append(of, r)
		}
	}
	slices.SortStableFunc(of, func(a, b rule) int {
		return cmp.Or(cmp.Compare(a.selector.specificity, b.selector.specificity), cmp.Compare(a.order, b.order))
	})
	var all []declaration
	for _, r := range of {
		all = append(all, r.declarations...)
	}
	if len(all) == 0 {
		return ""
	}
	own := attribute(t, "style")
	if b.tagged(own) { // which of them counts is not known
		own = merged(all) + "; " + own
	} else {
		own = merged(append(all, declarations(own)...))
	}
	t.Attr = slices.DeleteFunc(t.Attr, func(a markup.Attribute) bool { return a.Key == "style" })
	t.Attr = append(t.Attr, markup.Attribute{Key: "style", Val: own})
	return b.tag(t)
}

// tag writes a start tag. A word of Liquid between the attributes has no value.
func (b *builder) tag(t markup.Token) string {
	var out strings.Builder
	out.WriteString("<" + t.Data)
	for _, a := range t.Attr {
		out.WriteString(" " + a.Key)
		if a.Val != "" || !b.word.MatchString(a.Key) {
			out.WriteString(`="` + strings.ReplaceAll(html.EscapeString(a.Val), "&#39;", "'") + `"`)
		}
	}
	if t.Type == markup.SelfClosingTagToken {
		out.WriteString(" /")
	}
	return out.String() + ">"
}
