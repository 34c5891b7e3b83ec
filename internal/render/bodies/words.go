package bodies

import (
	"strings"
	"unicode/utf8"
)

// A word is what stands between two spaces.
type word struct {
	text  string
	width int
	tight bool // it follows the word before without a space
	only  bool // it has tags alone, and no width
}

func (w *writer) data(text string) {
	if w.skip > 0 {
		return
	}
	if w.pre {
		w.verbatim(text)
		return
	}
	for len(text) > 0 {
		at := w.b.word.FindStringIndex(text)
		end := len(text)
		if at != nil {
			end = at[0]
		}
		w.prose(text[:end])
		if at == nil {
			return
		}
		w.liquid(text[at[0]:at[1]])
		text = text[at[1]:]
	}
}

// prose takes text without Liquid.
func (w *writer) prose(text string) {
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

// liquid takes a mark: a value is a word; a tag between two paragraphs stands
// where it is, and one in a paragraph is a word of no width.
func (w *writer) liquid(text string) {
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
	if len(w.words) == 0 && !w.signed && !w.inRow() && !w.inHeading {
		w.out = append(w.out, text...)
		return
	}
	space := w.space
	w.words = append(w.words, word{text: text, tight: !space, only: true})
	w.space = false
}

func (w *writer) push(text string, tight bool) {
	n := len(w.words)
	if n == 0 {
		tight = false
	}
	if n > 0 && tight && !w.words[n-1].only {
		w.words[n-1].text += text
		w.words[n-1].width += w.b.width(text)
	} else {
		// Before a tag that spaces surround there is one, and none behind: without
		// what the tag holds, the two would be one too many.
		if n > 0 && w.words[n-1].only && !w.words[n-1].tight {
			tight = true
		}
		w.words = append(w.words, word{text: text, width: w.b.width(text), tight: tight})
	}
	w.space = false
}

// width counts characters, and takes values to have valueWidth and tags none.
func (b *builder) width(text string) int {
	n := utf8.RuneCountInString(b.word.ReplaceAllString(text, ""))
	for _, found := range b.word.FindAllString(text, -1) {
		if b.at(found).tag == "" {
			n += valueWidth
		}
	}
	return n
}
