package main

import (
	"fmt"
	"io"
	"regexp"
	"strings"

	"github.com/mattn/go-runewidth"
)

// A page writes text that fits the screen.
type page struct {
	out io.Writer
	screen
}

// line writes text with first before its first line and rest before the others
// that it is broken into.
func (w *page) line(first, rest, text string) {
	limit := 0
	if w.width > 0 {
		limit = max(minWidth/2, w.width-columns(rest))
	}
	before := first
	for _, line := range wrap(text, limit) {
		fmt.Fprintln(w.out, strings.TrimRight(before+line, " "))
		before = rest
	}
}

var escape = regexp.MustCompile("\x1b\\[[0-9;]*m")

// columns is how wide text is on a screen.
func columns(text string) int { return runewidth.StringWidth(escape.ReplaceAllString(text, "")) }
