package postgres

import (
	"encoding/binary"
	"fmt"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
)

// A row decodes values in place, from the receive buffer of the connection.
type row struct {
	statement *statement
	fields    []pgconn.FieldDescription
	values    [][]byte
	err       error // about the first column that was read with the wrong type
}

func (r *row) IsNull(column int) bool { return r.values[column] == nil }

func (r *row) Int64(column int) int64 {
	v := r.values[column]
	switch r.fields[column].DataTypeOID {
	case pgtype.Int8OID:
		if len(v) == 8 {
			return int64(binary.BigEndian.Uint64(v))
		}
	case pgtype.Int4OID:
		if len(v) == 4 {
			return int64(int32(binary.BigEndian.Uint32(v)))
		}
	case pgtype.Int2OID:
		if len(v) == 2 {
			return int64(int16(binary.BigEndian.Uint16(v)))
		}
	case pgtype.BoolOID:
		if len(v) == 1 {
			return int64(v[0])
		}
	}
	if v != nil {
		r.mistake(column, "a number")
	}
	return 0
}

func (r *row) Text(column int) string { return string(r.raw(column)) }

func (r *row) Bytes(column int) []byte {
	v := r.raw(column)
	if v == nil {
		return nil
	}
	return append(make([]byte, 0, len(v)), v...)
}

func (r *row) Len(column int) int { return len(r.raw(column)) }

func (r *row) Copy(column int, b []byte) { copy(b, r.raw(column)) }

// raw returns the bytes of a text or blob, nil for NULL.
func (r *row) raw(column int) []byte {
	switch r.fields[column].DataTypeOID {
	case pgtype.TextOID, pgtype.VarcharOID, pgtype.ByteaOID:
		return r.values[column]
	}
	r.mistake(column, "text or a blob")
	return nil
}

func (r *row) mistake(column int, as string) {
	if r.err == nil {
		r.err = fmt.Errorf("statement %q: column %q has type %d but is read as %s: cast it in the statement",
			r.statement.name, r.fields[column].Name, r.fields[column].DataTypeOID, as)
	}
}
