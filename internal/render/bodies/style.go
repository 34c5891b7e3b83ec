package bodies

import (
	"slices"
	"strings"

	"github.com/tdewolff/parse/v2"
	"github.com/tdewolff/parse/v2/css"
)

// A rule is one selector of a style sheet with what it declares.
type rule struct {
	selector     selector
	declarations []declaration
	order        int
}

// A declaration is a property and its value.
type declaration struct {
	property, value string
	important       bool
}

// sheet reads a style sheet: the rules that can stand in attributes, and the text
// of all others, such as those for a narrow or a dark screen, which stay.
func sheet(text string, order int) (rules []rule, rest string) {
	var kept strings.Builder
	for _, one := range statements(text) {
		block, ok := strings.CutSuffix(strings.TrimSpace(one.block), "}")
		if one.block == "" || !ok || strings.HasPrefix(one.prelude, "@") {
			kept.WriteString(one.text)
			continue
		}
		found := declarations(strings.TrimPrefix(block, "{"))
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

// A statement of a style sheet is a rule, or what begins with @.
type statement struct{ text, prelude, block string }

// statements splits a sheet. What cannot be read is a statement without a block.
func statements(text string) []statement {
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

// declarations reads what stands between braces, or in an attribute.
func declarations(text string) []declaration {
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

// merged is what an element has in its attribute: of each property the last, and
// an important one before any other.
func merged(all []declaration) string {
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
