package move

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"unsafe"

	"fanfare.dev/fanfare/internal/store"
)

// Values have one encoding, a tag and its content. Copies, journals and hashes use it.
const (
	tagNull byte = iota
	tagInt       // zigzag varint
	tagText      // uvarint length, bytes
	tagBlob      // the same
)

func appendInt(b []byte, v int64) []byte { return binary.AppendVarint(append(b, tagInt), v) }

func appendText(b []byte, v string) []byte {
	b = append(binary.AppendUvarint(append(b, tagText), uint64(len(v))), v...)
	return b
}

func appendBlob(b, v []byte) []byte {
	return append(binary.AppendUvarint(append(b, tagBlob), uint64(len(v))), v...)
}

// appendArg appends an argument of a statement.
func appendArg(b []byte, arg any) ([]byte, error) {
	switch v := arg.(type) {
	case nil:
		return append(b, tagNull), nil
	case int64:
		return appendInt(b, v), nil
	case string:
		return appendText(b, store.Text(v)), nil
	case []byte:
		return appendBlob(b, v), nil
	}
	return b, fmt.Errorf("an argument has the unsupported type %T", arg)
}

// appendColumn appends a column of a row.
func appendColumn(b []byte, row store.Row, column int, kind store.Kind) []byte {
	if row.IsNull(column) {
		return append(b, tagNull)
	}
	if kind == store.IntColumn {
		return appendInt(b, row.Int64(column))
	}
	tag := tagBlob
	if kind == store.TextColumn {
		tag = tagText
	}
	n := row.Len(column)
	start := len(b)
	b = binary.AppendUvarint(append(b, tag), uint64(n))
	from := len(b)
	b = append(b, make([]byte, n)...)
	row.Copy(column, b[from:])
	if kind == store.TextColumn { // an older version may have stored another form
		if read := alias(b[from:]); store.Text(read) != read {
			return appendText(b[:start], store.Text(string(b[from:])))
		}
	}
	return b
}

// alias returns b as a string without a copy. b must not change while the string is used.
func alias(b []byte) string {
	return unsafe.String(unsafe.SliceData(b), len(b)) //nolint:gosec // the bytes are read into memory of their own and not changed
}

// A reader decodes appended values. After the first error it returns zero values.
type reader struct {
	b   []byte
	err error
}

func (r *reader) fail() {
	if r.err == nil {
		r.err = errors.New("the journal of the move contains a damaged transaction")
	}
	r.b = nil
}

func (r *reader) byte() byte {
	if len(r.b) == 0 {
		r.fail()
		return 0
	}
	b := r.b[0]
	r.b = r.b[1:]
	return b
}

func (r *reader) uvarint() uint64 {
	v, n := binary.Uvarint(r.b)
	if n <= 0 {
		r.fail()
		return 0
	}
	r.b = r.b[n:]
	return v
}

func (r *reader) int() int64 {
	v, n := binary.Varint(r.b)
	if n <= 0 {
		r.fail()
		return 0
	}
	r.b = r.b[n:]
	return v
}

// bytes reads a length and that number of bytes, which it does not copy.
func (r *reader) bytes() []byte {
	n := r.uvarint()
	if n > uint64(len(r.b)) {
		r.fail()
		return nil
	}
	b := r.b[:n:n]
	r.b = r.b[n:]
	return b
}

// value reads one value and passes it to to.
func (r *reader) value(to store.Values) {
	switch r.byte() {
	case tagNull:
		to.Null()
	case tagInt:
		to.Int64(r.int())
	case tagText:
		to.Text(alias(r.bytes()))
	case tagBlob:
		to.Bytes(r.bytes())
	default:
		r.fail()
	}
}

// args reads all remaining values.
func (r *reader) args() []any {
	var list arguments
	for len(r.b) > 0 {
		r.value(&list)
	}
	return list
}

// arguments collects values as arguments of a statement.
type arguments []any

func (a *arguments) Int64(v int64)  { *a = append(*a, v) }
func (a *arguments) Text(v string)  { *a = append(*a, v) }
func (a *arguments) Bytes(v []byte) { *a = append(*a, v) }
func (a *arguments) Null()          { *a = append(*a, nil) }

// written collects values as bytes.
type written []byte

func (w *written) Int64(v int64)  { *w = appendInt(*w, v) }
func (w *written) Text(v string)  { *w = appendText(*w, store.Text(v)) }
func (w *written) Bytes(v []byte) { *w = appendBlob(*w, v) }
func (w *written) Null()          { *w = append(*w, tagNull) }

// rows are rows of values, one after the other.
type rows struct {
	b      []byte
	starts []int
}

func (r *rows) len() int { return len(r.starts) }

// add appends a row of a table.
func (r *rows) add(row store.Row, columns []store.Column) {
	r.starts = append(r.starts, len(r.b))
	for i := range columns {
		r.b = appendColumn(r.b, row, i, columns[i].Kind)
	}
}

func (r *rows) row(i int) []byte {
	end := len(r.b)
	if i+1 < len(r.starts) {
		end = r.starts[i+1]
	}
	return r.b[r.starts[i]:end]
}

// bind returns the values of row i.
func (r *rows) bind(i int, to store.Values) {
	for values := (reader{b: r.row(i)}); len(values.b) > 0; {
		values.value(to)
	}
}

// args returns the first n values of row i, which own their bytes.
func (r *rows) args(i, n int) []any {
	values := reader{b: bytes.Clone(r.row(i))}
	return values.args()[:n]
}
