package bodies

import "strings"

// brk is the word that breaks a line.
const brk = "\n"

func (w *writer) lineBreak() {
	w.words = append(w.words, word{text: brk, tight: true})
	w.space = false
}

// joined is the paragraph at hand on one line.
func (w *writer) joined() string {
	var line strings.Builder
	for i, part := range w.words {
		if part.text == brk {
			line.WriteByte(' ')
			continue
		}
		if i > 0 && !part.tight && w.words[i-1].text != brk {
			line.WriteByte(' ')
		}
		line.WriteString(part.text)
	}
	return line.String()
}

// flush writes the paragraph at hand, wrapped.
func (w *writer) flush() {
	words := w.words
	w.words, w.space = nil, false
	only := true
	for _, part := range words {
		only = only && part.only
	}
	if only { // tags are not a paragraph
		for _, part := range words {
			w.out = append(w.out, part.text...)
		}
		return
	}
	var line strings.Builder
	width, limit := 0, columns-w.indented()
	for i := 0; i < len(words); {
		if words[i].text == brk {
			w.line(line.String())
			line.Reset()
			width = 0
			i++
			continue
		}
		// What is not apart stays together.
		end, wide := i+1, words[i].width
		for end < len(words) && words[end].tight && words[end].text != brk {
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

// line writes one line with what stands before it.
func (w *writer) line(text string) {
	before := w.indent
	if w.signed {
		for _, one := range before[:max(0, len(before)-1)] {
			w.out = append(w.out, one...)
		}
		w.out = append(w.out, w.first...)
		w.signed = false
	} else {
		for _, one := range before {
			w.out = append(w.out, one...)
		}
	}
	w.out = append(w.out, text...)
	w.out = append(w.out, '\n')
	w.blank = false
}

// verbatim writes the lines of text as they are.
func (w *writer) verbatim(text string) {
	for line := range strings.SplitSeq(strings.Trim(text, "\n"), "\n") {
		if strings.TrimSpace(line) == "" && !w.signed {
			w.out = append(w.out, strings.TrimRight(strings.Join(w.indent, ""), " ")+"\n"...)
			continue
		}
		w.line("    " + line)
	}
}

// gap leaves one line empty.
func (w *writer) gap() {
	if !w.blank {
		w.out = append(w.out, strings.TrimRight(strings.Join(w.indent, ""), " ")+"\n"...)
		w.blank = true
	}
}

// gapIfText leaves a line empty before a list that follows text.
func (w *writer) gapIfText() {
	if len(w.indent) == 0 {
		w.gap()
	}
}

func (w *writer) indented() int {
	n := 0
	for _, one := range w.indent {
		n += len(one)
	}
	return n
}
