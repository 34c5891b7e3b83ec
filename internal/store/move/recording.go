package move

import (
	"encoding/binary"
	"fmt"

	"fanfare.dev/fanfare/internal/store"
)

// A journal records the statements of each transaction. On equal rows they write equal rows in
// every database.
//
//	transaction = uvarint length, way, statement …
//	statement   = op, uvarint length of name, name, then
//	              one set of arguments (run, each), or uvarint n and n sets
//	set         = uvarint length, values
//
// A scrub is a transaction of one set: the names.
const (
	wayWrite byte = iota
	wayErase
	wayScrub
)

const (
	opRun byte = iota
	opEach
	opEachOf
	opInsert
)

// A recording is a session that records its statements.
type recording struct {
	in    store.Session
	b     []byte
	clean bool  // no statement failed
	err   error // why recording failed
}

func (r *recording) begin(in store.Session, way byte) {
	r.in, r.b, r.clean, r.err = in, append(r.b[:0], way), true, nil
}

func (r *recording) name(op byte, statement string) {
	r.b = append(binary.AppendUvarint(append(r.b, op), uint64(len(statement))), statement...)
}

func (r *recording) set(args []any) {
	var set []byte
	for i, arg := range args {
		var err error
		if set, err = appendArg(set, arg); err != nil && r.err == nil {
			r.err = fmt.Errorf("argument %d: %w", i+1, err)
		}
	}
	r.b = appendSet(r.b, set)
}

func appendSet(b, set []byte) []byte {
	return append(binary.AppendUvarint(b, uint64(len(set))), set...)
}

// did records the end of a statement.
func (r *recording) did(err error) error {
	r.clean = r.clean && err == nil
	return err
}

func (r *recording) Run(statement string, args ...any) error {
	r.name(opRun, statement)
	r.set(args)
	return r.did(r.in.Run(statement, args...))
}

func (r *recording) Each(statement string, row func(store.Row) error, args ...any) error {
	r.name(opEach, statement)
	r.set(args)
	return r.did(r.in.Each(statement, row, args...))
}

func (r *recording) EachOf(statement string, n int, args func(int) []any, row func(int, store.Row) error) error {
	r.name(opEachOf, statement)
	r.b = binary.AppendUvarint(r.b, uint64(n))
	for i := range n {
		r.set(args(i))
	}
	return r.did(r.in.EachOf(statement, n, args, row))
}

func (r *recording) Insert(statement string, n int, bind func(int, store.Values)) error {
	r.name(opInsert, statement)
	r.b = binary.AppendUvarint(r.b, uint64(n))
	var set written
	for i := range n {
		set = set[:0]
		bind(i, &set)
		r.b = appendSet(r.b, set)
	}
	return r.did(r.in.Insert(statement, n, bind))
}

// scrubbed records a scrub.
func scrubbed(names [][]byte) []byte {
	var set []byte
	for _, name := range names {
		set = appendBlob(set, name)
	}
	return appendSet([]byte{wayScrub}, set)
}
