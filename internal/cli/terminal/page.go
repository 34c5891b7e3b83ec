package terminal

import (
	"fmt"
	"io"
	"regexp"
	"strings"

	"github.com/mattn/go-runewidth"
)

// A Page writes text that fits the screen.
type Page struct {
	Out io.Writer
	Screen
}

// Line writes text with first before its first line and rest before the others
// that it is broken into.
func (w *Page) Line(first, rest, text string) {
	limit := 0
	if w.Width > 0 {
		limit = max(MinWidth/2, w.Width-Columns(rest))
	}
	before := first
	for _, line := range Wrap(text, limit) {
		fmt.Fprintln(w.Out, strings.TrimRight(before+line, " "))
		before = rest
	}
}

var escape = regexp.MustCompile("\x1b\\[[0-9;]*m")

// Columns is how wide text is on a screen.
func Columns(text string) int { return runewidth.StringWidth(escape.ReplaceAllString(text, "")) }
