package postgres

import (
	"encoding/binary"
	"fmt"

	"github.com/jackc/pgx/v5/pgtype"

	"fanfare.dev/fanfare/internal/store"
)

// binaryFormat is the format of all parameters and all results.
var binaryFormat = []int16{pgtype.BinaryFormatCode}

// params encodes the parameters of one execution in the server's binary format. The buffer is reused for the next
// execution.
type params struct {
	values [][]byte
	buf    []byte
}

func (p *params) reset() {
	if p.buf == nil {
		p.buf = make([]byte, 0, 512) // never nil, because nil means NULL
	}
	p.values, p.buf = p.values[:0], p.buf[:0]
}

// add appends a value for a parameter of the given type. Earlier values stay valid, even if
// buf is reallocated.
func (p *params) add(oid uint32, arg any) (err error) {
	at := len(p.buf)
	switch v := arg.(type) {
	case nil:
		p.values = append(p.values, nil)
		return nil
	case int64:
		p.buf, err = appendInt(p.buf, oid, v)
	case string:
		p.buf, err = appendText(p.buf, oid, v)
	case []byte:
		p.buf, err = appendBytes(p.buf, oid, v)
	default:
		err = fmt.Errorf("the argument has type %T; use int64, string, []byte or nil", arg)
	}
	p.values = append(p.values, p.buf[at:len(p.buf):len(p.buf)])
	return err
}

func appendInt(b []byte, oid uint32, v int64) ([]byte, error) {
	switch oid {
	case pgtype.Int8OID:
		return binary.BigEndian.AppendUint64(b, uint64(v)), nil
	case pgtype.Int4OID:
		if int64(int32(v)) == v {
			return binary.BigEndian.AppendUint32(b, uint32(v)), nil
		}
	case pgtype.Int2OID:
		if int64(int16(v)) == v {
			return binary.BigEndian.AppendUint16(b, uint16(v)), nil
		}
	case pgtype.BoolOID:
		if v == 0 || v == 1 {
			return append(b, byte(v)), nil
		}
	default:
		return b, fmt.Errorf("an integer cannot be stored in a parameter of type %d", oid)
	}
	return b, fmt.Errorf("%d is out of range for a parameter of type %d", v, oid)
}

func appendText(b []byte, oid uint32, v string) ([]byte, error) {
	switch oid {
	case pgtype.TextOID, pgtype.VarcharOID:
		return append(b, store.Text(v)...), nil
	}
	return b, fmt.Errorf("a string cannot be stored in a parameter of type %d", oid)
}

func appendBytes(b []byte, oid uint32, v []byte) ([]byte, error) {
	if oid == pgtype.ByteaOID {
		return append(b, v...), nil
	}
	return b, fmt.Errorf("a blob cannot be stored in a parameter of type %d", oid)
}
