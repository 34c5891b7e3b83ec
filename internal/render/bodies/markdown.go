package bodies

import (
	"bytes"
	"regexp"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/renderer"
	"github.com/yuin/goldmark/renderer/html"
	"github.com/yuin/goldmark/util"
)

// markdown makes HTML of Markdown whose Liquid was exchanged. It is CommonMark
// with the tables, strikethrough and bare links of GitHub, and three things of
// our own: tags that stand alone on their lines are between what is around them,
// lines that begin with ^ are an inset, and a link with the title "button" that
// stands alone is a button.
func (b *builder) markdown(source string) string {
	source = b.wholeAddresses(source)
	source = b.conditionsApart(source)
	source = b.tagsInTables(source)
	md := goldmark.New(
		goldmark.WithExtensions(extension.Table, extension.Strikethrough, extension.Linkify),
		goldmark.WithParserOptions(
			parser.WithBlockParsers(util.Prioritized(tagLines{b}, 150), util.Prioritized(insets{}, 750)),
			parser.WithASTTransformers(util.Prioritized(lists{b}, 500), util.Prioritized(images{b}, 600)),
		),
		goldmark.WithRendererOptions(
			html.WithUnsafe(), // the author may write HTML as well; values are escaped where all are
			renderer.WithNodeRenderers(util.Prioritized(ownNodes{}, 500)),
		),
	)
	var out bytes.Buffer
	if err := md.Convert([]byte(source), &out); err != nil { // a buffer does not fail
		panic(err)
	}
	return asButtons(strings.NewReplacer("<table>", `<table class="data">`, "<th>", `<th scope="col">`, "<th style", `<th scope="col" style`).Replace(b.untable(out.String())))
}

// wholeAddresses makes links of <{{ event.url }}>, which Markdown would not know
// for an address.
func (b *builder) wholeAddresses(source string) string {
	return regexp.MustCompile(`<(`+b.key+`[a-p]+x)>`).ReplaceAllString(source, "[$1]($1)")
}

// conditionsApart puts the tags of a condition that has a paragraph of one line to
// itself on lines of their own: where it does not hold, the paragraph is not there,
// and no empty one is left.
func (b *builder) conditionsApart(source string) string {
	lines := strings.Split(source, "\n")
	blank := func(i int) bool { return i < 0 || i >= len(lines) || strings.TrimSpace(lines[i]) == "" }
	out := make([]string, 0, len(lines))
	for i, line := range lines {
		if blank(i) || !blank(i-1) || !blank(i+1) || strings.HasPrefix(line, "    ") {
			out = append(out, line)
			continue
		}
		out = append(out, b.condition(line)...)
	}
	return strings.Join(out, "\n")
}

// condition takes the tags of a line that is one condition as a whole from what stands
// between them; any other line it leaves alone.
func (b *builder) condition(line string) []string {
	words := b.word.FindAllStringIndex(line, -1)
	if len(words) < 2 || strings.TrimSpace(line[:words[0][0]]) != "" || strings.TrimSpace(line[words[len(words)-1][1]:]) != "" {
		return []string{line}
	}
	var parts []string
	open, from := 0, words[0][0]
	for i, at := range words {
		m := b.at(line[at[0]:at[1]])
		switch {
		case m.opens():
			open++
		case m.closes():
			open--
		}
		first, last := i == 0, i == len(words)-1
		if first && m.tag != "if" && m.tag != "unless" || last != (open == 0) {
			return []string{line}
		}
		if first || last || open == 1 && (m.tag == "else" || m.tag == "elsif") {
			if between := strings.TrimSpace(line[from:at[0]]); between != "" {
				parts = append(parts, between)
			}
			parts = append(parts, line[at[0]:at[1]])
			from = at[1]
		}
	}
	return parts
}

// onlyTags returns the tags of a line that has nothing else, nil for any other.
func (b *builder) onlyTags(line string) []*mark {
	words := b.word.FindAllString(line, -1)
	if len(words) == 0 || strings.TrimSpace(b.word.ReplaceAllString(line, "")) != "" {
		return nil
	}
	tags := make([]*mark, len(words))
	for i, w := range words {
		if tags[i] = b.at(w); tags[i].tag == "" || tags[i].tag == "raw" {
			return nil
		}
	}
	return tags
}

// depth is how far tags leave the blocks of Liquid open, and how far they close
// such as were open before.
func depth(tags []*mark) (after, lowest int) {
	for _, t := range tags {
		switch {
		case t.opens():
			after++
		case t.closes():
			after--
			lowest = min(lowest, after)
		}
	}
	return after, lowest
}

var delimiterRow = regexp.MustCompile(`^\s*\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)*\|?\s*$`)

// tagsInTables makes rows of the tags between the rows of a table, so that they
// do not end it; untable takes them out again. Tags that close or open what does
// not lie in the table end it.
func (b *builder) tagsInTables(source string) string {
	lines := strings.Split(source, "\n")
	out := make([]string, 0, len(lines))
	for i := 0; i < len(lines); i++ {
		out = append(out, lines[i])
		if i == 0 || !strings.Contains(lines[i], "|") || !delimiterRow.MatchString(lines[i]) || !strings.Contains(lines[i-1], "|") {
			continue
		}
		end := i + 1
		for end < len(lines) && strings.TrimSpace(lines[end]) != "" {
			end++
		}
		rows := lines[i+1 : end]
		for len(rows) > 0 {
			n := b.balanced(rows)
			if n == 0 {
				out = append(out, "")
				break
			}
			for _, row := range rows[:n] {
				if b.onlyTags(row) != nil {
					row = "| " + strings.TrimSpace(row) + " |"
				}
				out = append(out, row)
			}
			rows = rows[n:]
		}
		out = append(out, rows...)
		i = end - 1
	}
	return strings.Join(out, "\n")
}

// balanced counts the rows at the beginning up to where all is closed that they
// open: 1 for a row that is none of tags, 0 where they do not close.
func (b *builder) balanced(rows []string) int {
	open := 0
	for i, row := range rows {
		after, lowest := depth(b.onlyTags(row))
		if open+lowest < 0 {
			return 0
		}
		if open += after; open == 0 {
			return i + 1
		}
	}
	return 0
}

// untable takes the rows of tags out of the table.
func (b *builder) untable(text string) string {
	row := regexp.MustCompile(`<tr>\n<td[^>]*>((?:` + b.key + `[a-p]+x ?)+)</td>\n(?:<td[^>]*></td>\n)*</tr>`)
	return row.ReplaceAllStringFunc(text, func(found string) string {
		cell := row.FindStringSubmatch(found)[1]
		if b.onlyTags(cell) == nil {
			return found
		}
		return cell
	})
}

var buttonLink = regexp.MustCompile(`<p><a href="([^"]*)" title="button">(.*?)</a></p>`)

func asButtons(text string) string {
	return buttonLink.ReplaceAllString(text, `<f-button href="$1">$2</f-button>`)
}
