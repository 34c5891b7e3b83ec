package terminal

import (
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/mattn/go-isatty"
	"github.com/mattn/go-runewidth"
	"golang.org/x/sys/unix"
)

// IsTerminal reports whether somebody looks at w as it is written.
func IsTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && isatty.IsTerminal(f.Fd())
}

// A Screen is how output may look: how wide it is, and whether it may have
// colours. Where nobody looks it has no end to the right, so that columns are
// the same for every reader.
type Screen struct {
	Width   int // 0: as wide as it takes
	Colours bool
}

// ScreenOf looks at an output. COLUMNS overrules the terminal, and NO_COLOR
// (https://no-color.org) takes the colours away.
func ScreenOf(out io.Writer, lookupEnv func(string) (string, bool)) Screen {
	if !IsTerminal(out) {
		return Screen{}
	}
	none, _ := lookupEnv("NO_COLOR")
	dumb, _ := lookupEnv("TERM")
	s := Screen{Width: 80, Colours: none == "" && dumb != "dumb"}
	if f, ok := out.(*os.File); ok {
		if size, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ); err == nil && size.Col > 0 {
			s.Width = int(size.Col)
		}
	}
	if columns, ok := lookupEnv("COLUMNS"); ok {
		if n, err := strconv.Atoi(columns); err == nil && n > 0 {
			s.Width = n
		}
	}
	s.Width = max(s.Width, MinWidth)
	return s
}

// MinWidth is the narrowest screen that output is made for.
const MinWidth = 40

// The colours.
const (
	Green  = "32"
	Red    = "31"
	Yellow = "33"
	Bold   = "1"
)

// Paint colours text, where there are colours.
func (s Screen) Paint(colour, text string) string {
	if !s.Colours {
		return text
	}
	return "\x1b[" + colour + "m" + text + "\x1b[0m"
}

// Wrap breaks text between words so that each line has at most width columns; a
// longer word is cut. Width 0 breaks nothing.
func Wrap(text string, width int) []string {
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

// Short keeps a value on one line of a terminal.
func Short(value string) string {
	const most = 160
	var out []rune
	for _, r := range value {
		if len(out) == most {
			return string(out) + "…"
		}
		switch {
		case r == '\n':
			out = append(out, '⏎')
		case r < ' ' || r == 0x7f:
			out = append(out, ' ')
		default:
			out = append(out, r)
		}
	}
	return string(out)
}
