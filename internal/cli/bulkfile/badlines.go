package bulkfile

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"fanfare.dev/fanfare/internal/cli/terminal"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/client"
)

// BadLines is the file in which the refused lines of an import are gathered, each
// with its reason, so that it can be mended and imported itself: NDJSON with a
// remark before each line, CSV with a column error. It is made with the first one.
type BadLines struct {
	Path   string
	Header []string // of CSV; nil: NDJSON
	Preset []Column // what rows do not say themselves
	file   *os.File
	out    *bufio.Writer
	Size   int64
}

// A Column is a cell that the command line has filled in.
type Column struct{ name, value string }

// Presets are the columns of what the command line says for all rows, so that the
// file can be imported without saying it again.
func Presets(s client.Subscription) (list []Column) {
	for _, c := range []Column{{"topic", s.Topic}, {"channel", s.Channel}} {
		if c.value != "" {
			list = append(list, c)
		}
	}
	return list
}

// ContinueAt takes the file up where an earlier run left it at a size; what came later
// is cut off and will come again.
func (b *BadLines) ContinueAt(size int64) error {
	if b == nil || size == 0 {
		return nil
	}
	f, err := os.OpenFile(b.Path, os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	if err := f.Truncate(size); err != nil {
		return errors.Join(err, f.Close())
	}
	_, err = f.Seek(0, io.SeekEnd)
	b.file, b.out, b.Size = f, bufio.NewWriter(f), size
	return err
}

// Add writes a line of the file and why it was refused.
func (b *BadLines) Add(line Row, reason *fanfare.Error) error {
	if b == nil {
		return nil
	}
	if b.file == nil {
		f, err := os.OpenFile(b.Path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
		if err != nil {
			return err
		}
		b.file, b.out = f, bufio.NewWriter(f)
		if b.Header != nil {
			if err := b.write(string(csvLine(append(b.columns(), csvReasons))) + "\n"); err != nil {
				return err
			}
		}
	}
	why := fmt.Sprintf("%s%d: %s", remark, line.Line, terminal.Short(reason.Error()))
	if b.Header == nil {
		return b.write(why + "\n" + string(line.Raw) + "\n")
	}
	cells, err := csvCells(line.Raw)
	if err != nil {
		return err
	}
	return b.write(string(csvLine(append(b.cells(cells), strings.TrimPrefix(why, "# ")))) + "\n")
}

func (b *BadLines) write(text string) error {
	n, err := b.out.WriteString(text)
	b.Size += int64(n)
	return err
}

// columns are those of the table but error, and those that the command line
// stands for.
func (b *BadLines) columns() []string {
	names := make([]string, 0, len(b.Header)+len(b.Preset)+1)
	for _, name := range b.Header {
		if name != csvReasons {
			names = append(names, name)
		}
	}
	for _, c := range b.Preset {
		if !slices.Contains(b.Header, c.name) {
			names = append(names, c.name)
		}
	}
	return names
}

// cells returns the cells of a row for these columns. Surplus cells come before the
// values of the command line, where they are easy to remove. Missing cells are empty.
func (b *BadLines) cells(row []string) []string {
	cells := make([]string, 0, len(row)+len(b.Preset)+1)
	tooLong := len(row) > len(b.Header)
	for i, name := range b.Header {
		switch {
		case name == csvReasons && !tooLong:
		case i < len(row) && row[i] != "":
			cells = append(cells, row[i])
		default:
			cells = append(cells, b.said(name))
		}
	}
	if tooLong {
		cells = append(cells, row[len(b.Header):]...)
	}
	for _, c := range b.Preset {
		if !slices.Contains(b.Header, c.name) {
			cells = append(cells, c.value)
		}
	}
	return cells
}

// said is what the command line says of a column.
func (b *BadLines) said(name string) string {
	for _, c := range b.Preset {
		if c.name == name {
			return c.value
		}
	}
	return ""
}

// Flush hands everything to the system.
func (b *BadLines) Flush() error {
	if b == nil || b.file == nil {
		return nil
	}
	return b.out.Flush()
}

// Close ends the file; without a bad line, one of an earlier run is removed.
func (b *BadLines) Close(done bool) error {
	switch {
	case b == nil:
		return nil
	case b.file != nil:
		return errors.Join(b.out.Flush(), b.file.Close())
	case done:
		if err := os.Remove(b.Path); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return nil
}
