package postgres

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/jackc/pgx/v5/pgtype"

	"fanfare.dev/fanfare/internal/store"
)

// rows encodes the values of many rows in the server's binary format: by column, as the elements of arrays, or row by row,
// for COPY. In both formats a value is its length followed by its bytes.
type rows struct {
	oids  []uint32 // the types of a row's values
	bufs  [][]byte // one for each column, or one for all
	nulls []bool   // for each column: whether it contains NULL
	n     int

	at  int // index of the next value
	err error
}

var _ store.Values = (*rows)(nil)

// reset prepares rows for arrays, or for another format with a header of some bytes for each column.
func (r *rows) reset(oids []uint32, header int) { r.prepare(oids, len(oids), make([]byte, header)) }

// resetCopy prepares rows for the data after the header of COPY.
func (r *rows) resetCopy(oids []uint32) { r.prepare(oids, 1, []byte(copyHeader)) }

func (r *rows) prepare(oids []uint32, bufs int, header []byte) {
	r.oids, r.n, r.err = oids, 0, nil
	r.nulls = append(r.nulls[:0], make([]bool, len(oids))...)
	r.bufs = slices.Grow(r.bufs[:0], bufs)[:bufs] // reuses the memory of earlier rows
	for i := range r.bufs {
		r.bufs[i] = append(r.bufs[i][:0], header...)
	}
}

// add lets the caller write row i.
func (r *rows) add(i int, bind func(int, store.Values)) error {
	r.at = 0
	bind(i, r)
	r.n++
	if r.err == nil && r.at != len(r.oids) {
		r.err = fmt.Errorf("got %d values for %d columns", r.at, len(r.oids))
	}
	if r.err != nil {
		return fmt.Errorf("row %d: %w", i, r.err)
	}
	return nil
}

func (r *rows) addCopied(i int, bind func(int, store.Values)) error {
	r.bufs[0] = binary.BigEndian.AppendUint16(r.bufs[0], uint16(len(r.oids)))
	return r.add(i, bind)
}

func (r *rows) size() (n int) {
	for _, b := range r.bufs {
		n += len(b)
	}
	return n
}

func (r *rows) Int64(v int64) {
	r.value(func(b []byte, oid uint32) ([]byte, error) { return appendInt(b, oid, v) })
}

func (r *rows) Text(v string) {
	r.value(func(b []byte, oid uint32) ([]byte, error) { return appendText(b, oid, v) })
}

func (r *rows) Bytes(v []byte) {
	r.value(func(b []byte, oid uint32) ([]byte, error) { return appendBytes(b, oid, v) })
}

// null is the length that stands for NULL.
const null = math.MaxUint32

func (r *rows) Null() {
	if b := r.next(); b != nil {
		*b = binary.BigEndian.AppendUint32(*b, null)
		r.nulls[r.at-1] = true
	}
}

func (r *rows) value(write func(b []byte, oid uint32) ([]byte, error)) {
	b := r.next()
	if b == nil {
		return
	}
	at := len(*b)
	var err error
	*b, err = write(append(*b, 0, 0, 0, 0), r.oids[r.at-1])
	binary.BigEndian.PutUint32((*b)[at:], uint32(len(*b)-at-4))
	if err != nil && r.err == nil {
		r.err = fmt.Errorf("column %d: %w", r.at, err)
	}
}

// next returns the buffer for the next value, or nil if there are too many values.
func (r *rows) next() *[]byte {
	r.at++
	if r.at > len(r.oids) {
		return nil
	}
	return &r.bufs[(r.at-1)%len(r.bufs)]
}

// arrayHeader has four bytes each for: number of dimensions, whether there are NULLs, type of the elements, number of
// elements, and the first index.
const arrayHeader = 20

// array completes the header of a column.
func (r *rows) array(column int) []byte {
	nulls := 0
	if r.nulls[column] {
		nulls = 1
	}
	b := r.bufs[column]
	for i, v := range [...]int{1, nulls, int(r.oids[column]), r.n, 1} {
		binary.BigEndian.PutUint32(b[i*4:], uint32(v))
	}
	return b
}

// copyHeader is the signature with no flags and no extension. copyEnd replaces the number of values after the last row.
const (
	copyHeader = "PGCOPY\n\xff\r\n\x00" + "\x00\x00\x00\x00" + "\x00\x00\x00\x00"
	copyEnd    = "\xff\xff"
)

// copied returns all rows in the format of COPY.
func (r *rows) copied() []byte {
	r.bufs[0] = append(r.bufs[0], copyEnd...)
	return r.bufs[0]
}

// errPipeline reports a connection that was lost between two exchanges.
var errPipeline = errors.New("the connection was lost")

// arrayTypes maps value types to their array types.
var arrayTypes = map[uint32]uint32{
	pgtype.Int8OID:    pgtype.Int8ArrayOID,
	pgtype.Int4OID:    pgtype.Int4ArrayOID,
	pgtype.Int2OID:    pgtype.Int2ArrayOID,
	pgtype.BoolOID:    pgtype.BoolArrayOID,
	pgtype.TextOID:    pgtype.TextArrayOID,
	pgtype.VarcharOID: pgtype.VarcharArrayOID,
	pgtype.ByteaOID:   pgtype.ByteaArrayOID,
}

func arrayOf(element uint32) (uint32, error) {
	if array, ok := arrayTypes[element]; ok {
		return array, nil
	}
	return 0, fmt.Errorf("arrays of type %d are not supported", element)
}
