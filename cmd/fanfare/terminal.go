package main

import (
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/mattn/go-isatty"
	"github.com/mattn/go-runewidth"
	"golang.org/x/sys/unix"
)

// isTerminal reports whether somebody looks at w as it is written.
func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && isatty.IsTerminal(f.Fd())
}

// A screen is how output may look: how wide it is, and whether it may have
// colours. Where nobody looks it has no end to the right, so that columns are
// the same for every reader.
type screen struct {
	width   int // 0: as wide as it takes
	colours bool
}

// screen looks at standard output. COLUMNS overrules the terminal, and NO_COLOR
// (https://no-color.org) takes the colours away.
func (c *cli) screen() screen {
	if !isTerminal(c.out) {
		return screen{}
	}
	none, _ := c.lookupEnv("NO_COLOR")
	dumb, _ := c.lookupEnv("TERM")
	s := screen{width: 80, colours: none == "" && dumb != "dumb"}
	if f, ok := c.out.(*os.File); ok {
		if size, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ); err == nil && size.Col > 0 {
			s.width = int(size.Col)
		}
	}
	if columns, ok := c.lookupEnv("COLUMNS"); ok {
		if n, err := strconv.Atoi(columns); err == nil && n > 0 {
			s.width = n
		}
	}
	s.width = max(s.width, minWidth)
	return s
}

// minWidth is the narrowest screen that output is made for.
const minWidth = 40

// The colours.
const (
	green  = "32"
	red    = "31"
	yellow = "33"
	bold   = "1"
)

// paint colours text, where there are colours.
func (s screen) paint(colour, text string) string {
	if !s.colours {
		return text
	}
	return "\x1b[" + colour + "m" + text + "\x1b[0m"
}

// wrap breaks text between words so that each line has at most width columns; a
// longer word is cut. Width 0 breaks nothing.
func wrap(text string, width int) []string {
	if width <= 0 || runewidth.StringWidth(text) <= width {
		return []string{text}
	}
	var lines []string
	line := ""
	for _, word := range strings.Split(text, " ") {
		for {
			joined := word
			if line != "" {
				joined = line + " " + word
			}
			if runewidth.StringWidth(joined) <= width {
				line = joined
				break
			}
			if line != "" {
				lines, line = append(lines, line), ""
				continue
			}
			head := runewidth.Truncate(word, width, "")
			if head == "" { // one character that is wider than the line
				line = word
				break
			}
			lines, word = append(lines, head), word[len(head):]
		}
	}
	return append(lines, line)
}
