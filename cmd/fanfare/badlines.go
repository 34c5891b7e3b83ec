package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"fanfare.dev/fanfare"
)

// badLines is the file in which the refused lines of an import are gathered, each
// with its reason, so that it can be mended and imported itself: NDJSON with a
// remark before each line, CSV with a column error. It is made with the first one.
type badLines struct {
	path   string
	header []string // of CSV; nil: NDJSON
	file   *os.File
	out    *bufio.Writer
	size   int64
}

// goOn takes the file up where an earlier run left it at a size; what came later
// is cut off and will come again.
func (b *badLines) goOn(size int64) error {
	if b == nil || size == 0 {
		return nil
	}
	f, err := os.OpenFile(b.path, os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	if err := f.Truncate(size); err != nil {
		return errors.Join(err, f.Close())
	}
	_, err = f.Seek(0, io.SeekEnd)
	b.file, b.out, b.size = f, bufio.NewWriter(f), size
	return err
}

// add writes a line of the file and why it was refused.
func (b *badLines) add(line row, reason *fanfare.Error) error {
	if b == nil {
		return nil
	}
	if b.file == nil {
		f, err := os.OpenFile(b.path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
		if err != nil {
			return err
		}
		b.file, b.out = f, bufio.NewWriter(f)
		if b.header != nil {
			if err := b.write(string(csvLine(append(withoutReasons(b.header, b.header), csvReasons))) + "\n"); err != nil {
				return err
			}
		}
	}
	why := fmt.Sprintf("%s%d: %s", remark, line.line, short(reason.Error()))
	if b.header == nil {
		return b.write(why + "\n" + string(line.raw) + "\n")
	}
	cells, err := csvCells(line.raw)
	if err != nil {
		return err
	}
	return b.write(string(csvLine(append(withoutReasons(b.header, cells), strings.TrimPrefix(why, "# ")))) + "\n")
}

func (b *badLines) write(text string) error {
	n, err := b.out.WriteString(text)
	b.size += int64(n)
	return err
}

// withoutReasons leaves out the cell of the column error, where the table has one.
func withoutReasons(header, cells []string) []string {
	kept := make([]string, 0, len(cells)+1)
	for i, cell := range cells {
		if header[i] != csvReasons {
			kept = append(kept, cell)
		}
	}
	return kept
}

// flush hands everything to the system.
func (b *badLines) flush() error {
	if b == nil || b.file == nil {
		return nil
	}
	return b.out.Flush()
}

// close ends the file; without a bad line, one of an earlier run is removed.
func (b *badLines) close(done bool) error {
	switch {
	case b == nil:
		return nil
	case b.file != nil:
		return errors.Join(b.out.Flush(), b.file.Close())
	case done:
		if err := os.Remove(b.path); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return nil
}
