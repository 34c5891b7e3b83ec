package bodies

import (
	"bytes"
	"cmp"
	"html"
	"slices"
	"strings"

	"github.com/andybalholm/cascadia"
	"github.com/tdewolff/parse/v2"
	"github.com/tdewolff/parse/v2/css"
	markup "golang.org/x/net/html"
)

// A rule is one selector of a style sheet with its declarations.
type rule struct {
	selector     cascadia.Sel
	declarations []declaration
	order        int
}

// A declaration is a property with its value.
type declaration struct {
	property, value string
	important       bool
}

// parseStyles returns the rules of a style sheet that can be inlined, and the text of all
// others, such as media queries.
func parseStyles(text string, order int) (rules []rule, rest string) {
	var kept strings.Builder
	for _, one := range parseStatements(text) {
		block, ok := strings.CutSuffix(strings.TrimSpace(one.block), "}")
		if one.block == "" || !ok || strings.HasPrefix(one.prelude, "@") {
			kept.WriteString(one.text)
			continue
		}
		found := parseDeclarations(strings.TrimPrefix(block, "{"))
		var stay []string
		for text := range strings.SplitSeq(one.prelude, ",") {
			s, ok := parseSelector(strings.TrimSpace(text))
			if !ok {
				stay = append(stay, strings.TrimSpace(text))
				continue
			}
			rules = append(rules, rule{s, found, order + len(rules)})
		}
		if len(stay) > 0 {
			kept.WriteString("\n" + strings.Join(stay, ", ") + " " + strings.TrimSpace(one.block))
		}
	}
	return rules, kept.String()
}

// A statement of a style sheet is a rule or an at-rule.
type statement struct{ text, prelude, block string }

// parseStatements splits a style sheet. Text that cannot be parsed is a statement without a
// block.
func parseStatements(text string) []statement {
	var all []statement
	var whole, prelude, block strings.Builder
	depth := 0
	done := func() {
		if whole.Len() > 0 {
			all = append(all, statement{whole.String(), strings.TrimSpace(prelude.String()), block.String()})
		}
		whole.Reset()
		prelude.Reset()
		block.Reset()
	}
	lexer := css.NewLexer(parse.NewInputString(text))
	for {
		kind, data := lexer.Next()
		if kind == css.ErrorToken {
			break
		}
		if kind == css.CDOToken || kind == css.CDCToken || kind == css.CommentToken {
			continue
		}
		whole.Write(data)
		if kind == css.LeftBraceToken {
			depth++
		}
		if depth > 0 {
			block.Write(data)
		} else {
			prelude.Write(data)
		}
		if kind == css.RightBraceToken {
			depth--
		}
		if depth <= 0 && (kind == css.RightBraceToken || kind == css.SemicolonToken) {
			depth = 0
			done()
		}
	}
	done()
	return all
}

// parseDeclarations parses a block without its braces, or a style attribute.
func parseDeclarations(text string) []declaration {
	var all []declaration
	var one strings.Builder
	depth := 0
	done := func() {
		property, value, ok := strings.Cut(one.String(), ":")
		one.Reset()
		value, important := strings.CutSuffix(strings.TrimSpace(value), "!important")
		if property = strings.TrimSpace(property); ok && property != "" {
			all = append(all, declaration{strings.ToLower(property), strings.TrimSpace(value), important})
		}
	}
	lexer := css.NewLexer(parse.NewInputString(text))
	for {
		kind, data := lexer.Next()
		switch kind {
		case css.ErrorToken:
			done()
			return all
		case css.CommentToken:
			continue
		case css.FunctionToken, css.LeftParenthesisToken:
			depth++
		case css.RightParenthesisToken:
			depth--
		}
		if kind == css.SemicolonToken && depth <= 0 {
			done()
			continue
		}
		one.Write(data)
	}
}

// mergeDeclarations returns the text of a style attribute: the last declaration of each
// property, unless an earlier one is important.
func mergeDeclarations(all []declaration) string {
	var kept []declaration
	for _, d := range all {
		at := slices.IndexFunc(kept, func(k declaration) bool { return k.property == d.property })
		if at >= 0 && kept[at].important && !d.important {
			continue
		}
		if at >= 0 {
			kept = slices.Delete(kept, at, at+1)
		}
		kept = append(kept, d)
	}
	var out strings.Builder
	for i, d := range kept {
		if i > 0 {
			out.WriteString("; ")
		}
		out.WriteString(d.property + ": " + d.value)
		if d.important {
			out.WriteString(" !important")
		}
	}
	return out.String()
}

// parseSelector parses names, classes and ids, combined as descendants or children (>). Other
// selectors depend on the state of the reader, or few readers support them.
func parseSelector(text string) (cascadia.Sel, bool) {
	if strings.ContainsAny(text, `:[+~\`) {
		return nil, false
	}
	s, err := cascadia.Parse(text)
	return s, err == nil
}

// inlineStyles moves the rules of style sheets into style attributes, since some readers drop
// style sheets. Rules that do not concern an element itself (media queries, :hover) stay, and
// so do style sheets with Liquid tags. An inlining library would parse the HTML into a tree, which
// moves a loop out of the table whose rows it repeats (docs/decisions/0031-libraries.md). Here
// everything but the affected start tags stays as it was written.
func (b *builder) inlineStyles(source, builtin string) string {
	rules, _ := parseStyles(builtin, 0)
	source, rules = b.takeStyles(source, rules)
	if len(rules) == 0 {
		return source
	}
	var out bytes.Buffer
	var open *markup.Node // the innermost open element
	z := markup.NewTokenizer(strings.NewReader(source))
	for {
		kind := z.Next()
		if kind == markup.ErrorToken {
			return out.String()
		}
		raw := slices.Clone(z.Raw()) // the token overwrites it
		switch kind {
		case markup.StartTagToken, markup.SelfClosingTagToken:
			t := z.Token()
			open = closeImplied(open, t.Data)
			open = &markup.Node{Type: markup.ElementNode, Data: t.Data, Attr: slices.Clone(t.Attr), Parent: open}
			if styled := b.withStyles(t, open, rules); styled != "" {
				raw = []byte(styled)
			}
			if voidElements[t.Data] {
				open = open.Parent
			}
		case markup.EndTagToken:
			name, _ := z.TagName()
			open = closeElement(open, string(name))
		}
		out.Write(raw)
	}
}

// takeStyles removes the rules that can be inlined from the style elements, and returns them.
func (b *builder) takeStyles(source string, rules []rule) (string, []rule) {
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
			if inStyle && !b.hasTags(raw) {
				var found []rule
				found, raw = parseStyles(raw, len(rules)+1)
				rules = append(rules, found...)
			}
		}
		out.WriteString(raw)
	}
	return strings.NewReplacer("<style></style>", "", "<style>\n</style>", "").Replace(out.String()), rules
}

// hasTags reports whether the text has tags of Liquid.
func (b *builder) hasTags(text string) bool {
	return slices.ContainsFunc(b.pattern.FindAllString(text, -1), func(w string) bool { return b.at(w).tag != "" })
}

// closeImplied closes the elements that end where an element begins.
func closeImplied(open *markup.Node, name string) *markup.Node {
	ends := map[string]string{"li": "li", "td": "td th", "th": "td th", "tr": "td th tr", "dt": "dt dd", "dd": "dt dd", "tbody": "td th tr thead tbody"}[name]
	if blockElements[name] && ends == "" {
		ends = "p"
	}
	for open != nil && strings.Contains(" "+ends+" ", " "+open.Data+" ") {
		open = open.Parent
	}
	return open
}

// closeElement closes an element.
func closeElement(open *markup.Node, name string) *markup.Node {
	for e := open; e != nil; e = e.Parent {
		if e.Data == name {
			return e.Parent
		}
	}
	return open
}

// withStyles returns the start tag with the matching rules, "" without any.
func (b *builder) withStyles(t markup.Token, open *markup.Node, rules []rule) string {
	var of []rule
	for _, r := range rules {
		if r.selector.Match(open) {
			of = append(of, r)
		}
	}
	slices.SortStableFunc(of, func(a, b rule) int {
		x, y := a.selector.Specificity(), b.selector.Specificity()
		return cmp.Or(slices.Compare(x[:], y[:]), cmp.Compare(a.order, b.order))
	})
	var all []declaration
	for _, r := range of {
		all = append(all, r.declarations...)
	}
	if len(all) == 0 {
		return ""
	}
	own := attribute(t, "style")
	if b.hasTags(own) { // it is unknown which tags apply
		own = mergeDeclarations(all) + "; " + own
	} else {
		own = mergeDeclarations(append(all, parseDeclarations(own)...))
	}
	t.Attr = slices.DeleteFunc(t.Attr, func(a markup.Attribute) bool { return a.Key == "style" })
	t.Attr = append(t.Attr, markup.Attribute{Key: "style", Val: own})
	return b.startTag(t)
}

// startTag writes a start tag. A placeholder between the attributes has no value.
func (b *builder) startTag(t markup.Token) string {
	var out strings.Builder
	out.WriteString("<" + t.Data)
	for _, a := range t.Attr {
		out.WriteString(" " + a.Key)
		if a.Val != "" || !b.pattern.MatchString(a.Key) {
			out.WriteString(`="` + strings.ReplaceAll(html.EscapeString(a.Val), "&#39;", "'") + `"`)
		}
	}
	if t.Type == markup.SelfClosingTagToken {
		out.WriteString(" /")
	}
	return out.String() + ">"
}
