package bodies

import (
	"strings"
	"unicode/utf8"
)

// A textWord is text between two spaces.
type textWord struct {
	text     string
	width    int
	glued    bool // no space separates it from the word before
	tagsOnly bool // it consists of tags and has no width
}

func (w *textWriter) addText(text string) {
	if w.skip > 0 {
		return
	}
	if w.pre {
		w.verbatim(text)
		return
	}
	for len(text) > 0 {
		at := w.b.pattern.FindStringIndex(text)
		end := len(text)
		if at != nil {
			end = at[0]
		}
		w.addWords(text[:end])
		if at == nil {
			return
		}
		w.addLiquid(text[at[0]:at[1]])
		text = text[at[1]:]
	}
}

// addWords adds text without Liquid.
func (w *textWriter) addWords(text string) {
	for text != "" {
		rest := strings.TrimLeft(text, " \t\n\f")
		if rest != text {
			w.space = true
			text = rest
			continue
		}
		end := strings.IndexAny(text, " \t\n\f")
		if end < 0 {
			end = len(text)
		}
		w.push(text[:end], !w.space)
		text = text[end:]
	}
}

// addLiquid adds a placeholder: a value is a word, a tag between paragraphs stays where it is,
// and a tag in a paragraph is a word of no width.
func (w *textWriter) addLiquid(text string) {
	m := w.b.at(text)
	if m.tag == "" || m.tag == "raw" {
		w.push(text, !w.space)
		return
	}
	switch m.tag {
	case "for":
		w.loops++
	case "endfor":
		w.loops--
	}
	if len(w.words) == 0 && !w.hasMarker && !w.inDataRow() && !w.inHeading {
		w.out = append(w.out, text...)
		return
	}
	space := w.space
	w.words = append(w.words, textWord{text: text, glued: !space, tagsOnly: true})
	w.space = false
}

func (w *textWriter) push(text string, tight bool) {
	n := len(w.words)
	if n == 0 {
		tight = false
	}
	if n > 0 && tight && !w.words[n-1].tagsOnly {
		w.words[n-1].text += text
		w.words[n-1].width += w.b.width(text)
	} else {
		// A tag between spaces keeps the space before it only: if the block is empty, two
		// spaces would be left.
		if n > 0 && w.words[n-1].tagsOnly && !w.words[n-1].glued {
			tight = true
		}
		w.words = append(w.words, textWord{text: text, width: w.b.width(text), glued: tight})
	}
	w.space = false
}

// width counts characters; a value counts as valueWidth and a tag as nothing.
func (b *builder) width(text string) int {
	n := utf8.RuneCountInString(b.pattern.ReplaceAllString(text, ""))
	for _, found := range b.pattern.FindAllString(text, -1) {
		if b.at(found).tag == "" {
			n += valueWidth
		}
	}
	return n
}

// lineBreakWord breaks a line.
const lineBreakWord = "\n"

func (w *textWriter) lineBreak() {
	w.words = append(w.words, textWord{text: lineBreakWord, glued: true})
	w.space = false
}

// joinWords returns the current paragraph on one line.
func (w *textWriter) joinWords() string {
	var line strings.Builder
	for i, part := range w.words {
		if part.text == lineBreakWord {
			line.WriteByte(' ')
			continue
		}
		if i > 0 && !part.glued && w.words[i-1].text != lineBreakWord {
			line.WriteByte(' ')
		}
		line.WriteString(part.text)
	}
	return line.String()
}

// flush writes the current paragraph, wrapped.
func (w *textWriter) flush() {
	words := w.words
	w.words, w.space = nil, false
	only := true
	for _, part := range words {
		only = only && part.tagsOnly
	}
	if only { // tags are not a paragraph
		for _, part := range words {
			w.out = append(w.out, part.text...)
		}
		return
	}
	var line strings.Builder
	width, limit := 0, maxColumns-w.indented()
	for i := 0; i < len(words); {
		if words[i].text == lineBreakWord {
			w.line(line.String())
			line.Reset()
			width = 0
			i++
			continue
		}
		// Glued words stay together.
		end, wide := i+1, words[i].width
		for end < len(words) && words[end].glued && words[end].text != lineBreakWord {
			wide += words[end].width
			end++
		}
		if width > 0 && width+1+wide > limit {
			w.line(line.String())
			line.Reset()
			width = 0
		}
		if line.Len() > 0 {
			line.WriteByte(' ')
			width++
		}
		for _, part := range words[i:end] {
			line.WriteString(part.text)
		}
		width += wide
		i = end
	}
	if line.Len() > 0 {
		w.line(line.String())
	}
}

// line writes one line with the indentation before it.
func (w *textWriter) line(text string) {
	before := w.indent
	if w.hasMarker {
		for _, one := range before[:max(0, len(before)-1)] {
			w.out = append(w.out, one...)
		}
		w.out = append(w.out, w.marker...)
		w.hasMarker = false
	} else {
		for _, one := range before {
			w.out = append(w.out, one...)
		}
	}
	w.out = append(w.out, text...)
	w.out = append(w.out, '\n')
	w.blank = false
}

// verbatim writes the lines of text unchanged.
func (w *textWriter) verbatim(text string) {
	for line := range strings.SplitSeq(strings.Trim(text, "\n"), "\n") {
		if strings.TrimSpace(line) == "" && !w.hasMarker {
			w.out = append(w.out, strings.TrimRight(strings.Join(w.indent, ""), " ")+"\n"...)
			continue
		}
		w.line("    " + line)
	}
}

// blankLine writes an empty line, unless one was just written.
func (w *textWriter) blankLine() {
	if !w.blank {
		w.out = append(w.out, strings.TrimRight(strings.Join(w.indent, ""), " ")+"\n"...)
		w.blank = true
	}
}

// blankLineBeforeList writes an empty line before a list that is not in another list.
func (w *textWriter) blankLineBeforeList() {
	if len(w.indent) == 0 {
		w.blankLine()
	}
}

func (w *textWriter) indented() int {
	n := 0
	for _, one := range w.indent {
		n += len(one)
	}
	return n
}
