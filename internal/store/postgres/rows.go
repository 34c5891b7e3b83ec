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

// rows takes the values of many rows in the server's binary format: by column, as
// the elements of arrays, or one row after the other, as COPY has them. In
// both a value is its length and its bytes.
type rows struct {
	oids  []uint32 // the types of a row's values
	bufs  [][]byte // of each column, or one for all
	nulls []bool   // of each column
	n     int

	at  int // the value that is next
	err error
}

var _ store.Values = (*rows)(nil)

// reset prepares rows for arrays, or for another format with a header of some bytes a column.
func (r *rows) reset(oids []uint32, header int) { r.prepare(oids, len(oids), make([]byte, header)) }

// resetCopy prepares rows for the data after the header of COPY.
func (r *rows) resetCopy(oids []uint32) { r.prepare(oids, 1, []byte(copyHeader)) }

func (r *rows) prepare(oids []uint32, bufs int, header []byte) {
	r.oids, r.n, r.err = oids, 0, nil
	r.nulls = append(r.nulls[:0], make([]bool, len(oids))...)
	r.bufs = slices.Grow(r.bufs[:0], bufs)[:bufs] // with the memory of those before
	for i := range r.bufs {
		r.bufs[i] = append(r.bufs[i][:0], header...)
	}
}

// add has row i of the caller written.
func (r *rows) add(i int, bind func(int, store.Values)) error {
	r.at = 0
	bind(i, r)
	r.n++
	if r.err == nil && r.at != len(r.oids) {
		r.err = fmt.Errorf("%d values for %d columns", r.at, len(r.oids))
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

// null is the length of what is not there.
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

// next is where the next value goes, nil if there is no column for it.
func (r *rows) next() *[]byte {
	r.at++
	if r.at > len(r.oids) {
		return nil
	}
	return &r.bufs[(r.at-1)%len(r.bufs)]
}

// arrayHeader: dimensions, whether there are NULLs, type of the elements, how
// many, and the number of the first; four bytes each.
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

// copyHeader is the signature, no flags and no extension; copyEnd is in place of
// the number of a row's values.
const (
	copyHeader = "PGCOPY\n\xff\r\n\x00" + "\x00\x00\x00\x00" + "\x00\x00\x00\x00"
	copyEnd    = "\xff\xff"
)

// copied is all rows as COPY reads them.
func (r *rows) copied() []byte {
	r.bufs[0] = append(r.bufs[0], copyEnd...)
	return r.bufs[0]
}

// errPipeline is of a connection that was lost between two exchanges.
var errPipeline = errors.New("the connection was lost")

// arrayTypes are the types of values, and of arrays of them.
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
	return 0, fmt.Errorf("no arrays of type %d are sent", element)
}
