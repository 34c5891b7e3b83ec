package terminal

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/mattn/go-runewidth"
)

// A Table gathers rows, whose cells are separated by tabs, and writes them in
// columns when it is flushed. On a terminal it fits the width: the widest columns
// give way, and a cell that was cut ends in "…". Elsewhere nothing is cut.
type Table struct {
	out   io.Writer
	width int // 0: as wide as it takes
	text  strings.Builder
}

// NewTable returns a table that fits a width; 0 means any width.
func NewTable(out io.Writer, width int) *Table { return &Table{out: out, width: width} }

const (
	columnGap   = 2
	leastColumn = 8 // to which a column is cut
)

// Write takes rows.
func (t *Table) Write(b []byte) (int, error) { return t.text.Write(b) }

// Flush writes what was gathered. An output that takes nothing any more is no
// concern of a table.
func (t *Table) Flush() {
	if t.text.Len() == 0 {
		return
	}
	var rows [][]string
	for line := range strings.SplitSeq(strings.TrimSuffix(t.text.String(), "\n"), "\n") {
		rows = append(rows, strings.Split(line, "\t"))
	}
	t.text.Reset()
	widths := fit(widthsOf(rows), t.width)
	var out strings.Builder
	for _, row := range rows {
		line := ""
		for i, cell := range row {
			if Columns(cell) > widths[i] {
				cell = runewidth.Truncate(cell, widths[i], "…")
			}
			line += cell + strings.Repeat(" ", widths[i]-Columns(cell)+columnGap)
		}
		out.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	fmt.Fprint(t.out, out.String())
}

func widthsOf(rows [][]string) []int {
	var widths []int
	for _, row := range rows {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], Columns(cell))
		}
	}
	return widths
}

// fit narrows the widest columns until the table fits; a limit of 0 means any width.
// The first column names the row and stays whole, because people copy it.
func fit(widths []int, limit int) []int {
	if limit == 0 {
		return widths
	}
	limit -= columnGap * (len(widths) - 1)
	for {
		sum := 0
		for _, w := range widths {
			sum += w
		}
		if sum <= limit || len(widths) == 1 {
			return widths
		}
		rest := widths[1:]
		widest := slices.Max(rest)
		if widest <= leastColumn {
			return widths
		}
		rest[slices.Index(rest, widest)]--
	}
}
