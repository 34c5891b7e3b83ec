package postgres

import (
	"bytes"
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"

	"fanfare.dev/fanfare/internal/store"
)

const (
	// maxInsertRows and maxInsertBytes limit one message.
	maxInsertRows  = 2000
	maxInsertBytes = 1 << 20

	// From copyRows rows on, COPY is used. It halves the work of both sides but needs its own round trip.
	copyRows     = 1000
	maxCopyBytes = 4 << 20
)

// An insert has the forms of an INSERT for many rows. Rows are sent as one array for each column, for which the server
// needs one plan whatever the number of rows.
//
// If existing rows are to stay unchanged, all rows are first inserted as new: looking for each row before it is written,
// and confirming it afterwards, would cost a third of the server's work and one log record for each row. Only a
// transaction that fails because a row exists is repeated with ON CONFLICT; it is then wary.
type insert struct {
	of                *statement
	head, tuple, tail string // INSERT INTO t (a, b) | ($1, $2) | ON CONFLICT …
	skips             bool   // the tail leaves existing rows unchanged
	arrays, wary      atomic.Pointer[statement]
}

// skip is the tail that leaves existing rows unchanged.
var skip = regexp.MustCompile(`^ ON CONFLICT \([^)]*\) DO NOTHING$`)

var placeholder = regexp.MustCompile(`\$\d+`)

// newInsert parses an INSERT … VALUES (…). It returns nil for other statements.
func newInsert(of *statement) *insert {
	const values = " VALUES "
	at := strings.Index(of.text, values)
	if at < 0 || !strings.HasPrefix(of.text, "INSERT INTO ") {
		return nil
	}
	in := &insert{of: of, head: of.text[:at]}
	rest := of.text[at+len(values):]
	depth := 0
	for i, c := range rest {
		switch c {
		case '(':
			depth++
		case ')':
			depth--
		}
		if depth == 0 {
			in.tuple, in.tail = rest[:i+1], rest[i+1:]
			in.skips = skip.MatchString(in.tail)
			break
		}
	}
	if !placeholder.MatchString(in.tuple) || placeholder.MatchString(in.tail) {
		return nil
	}
	return in
}

// follows is the clause after the rows.
func (in *insert) follows(wary bool) string {
	if in.skips && !wary {
		return ""
	}
	return in.tail
}

// ofArrays returns the form with an array for each parameter of a row. Its shape is known without asking the server.
func (in *insert) ofArrays(wary bool) (*statement, error) {
	kept, name := &in.arrays, in.of.name+"_rows"
	if in.skips && wary {
		kept, name = &in.wary, in.of.name+"_wary"
	}
	if form := kept.Load(); form != nil {
		return form, nil
	}
	var oids []uint32
	var arrays, names []string
	for i, element := range in.of.shape.Load().ParamOIDs {
		oid, err := arrayOf(element)
		if err != nil {
			return nil, fmt.Errorf("statement %q: parameter %d: %w", in.of.name, i+1, err)
		}
		oids = append(oids, oid)
		arrays = append(arrays, "$"+strconv.Itoa(i+1))
		names = append(names, "v"+strconv.Itoa(i+1))
	}
	row := placeholder.ReplaceAllStringFunc(in.tuple[1:len(in.tuple)-1], func(p string) string { return "u.v" + p[1:] })
	form := &statement{name: name, idempotent: in.of.idempotent,
		text: in.head + " SELECT " + row + " FROM unnest(" + strings.Join(arrays, ", ") + ") AS u (" + strings.Join(names, ", ") + ")" + in.follows(wary)}
	form.shape.Store(&shape{Name: form.name, ParamOIDs: oids})
	if kept.CompareAndSwap(nil, form) {
		return form, nil
	}
	return kept.Load(), nil
}

// copy returns the equivalent COPY, or "" if the INSERT does more than a COPY can.
func (in *insert) copy(wary bool) string {
	n := len(in.of.shape.Load().ParamOIDs)
	if in.follows(wary) != "" || in.tuple != "("+strings.Join(placeholders(n), ", ")+")" {
		return ""
	}
	return "COPY " + strings.TrimPrefix(in.head, "INSERT INTO ") + " FROM STDIN (FORMAT binary)"
}

func placeholders(n int) []string {
	list := make([]string, n)
	for i := range list {
		list[i] = "$" + strconv.Itoa(i+1)
	}
	return list
}

func (s *session) Insert(name string, n int, bind func(int, store.Values)) error {
	if n == 0 {
		return nil
	}
	st, err := s.ready(name)
	if err != nil {
		return err
	}
	if st.insert == nil {
		return fmt.Errorf("statement %q is not an INSERT … VALUES (…) of one row", name)
	}
	if text := st.insert.copy(s.wary); text != "" && n >= copyRows && s.begin != nil {
		return s.insertCopy(st, text, n, bind)
	}
	return s.insertArrays(st, n, bind)
}

func (s *session) insertArrays(st *statement, n int, bind func(int, store.Values)) error {
	form, err := st.insert.ofArrays(s.wary)
	if err != nil {
		return err
	}
	if err := s.prepare(form); err != nil {
		return err
	}
	rows := &s.conn.rows
	rows.reset(st.shape.Load().ParamOIDs, arrayHeader)
	for i := range n {
		if err := rows.add(i, bind); err != nil {
			return of(st, err)
		}
		if i < n-1 && rows.n < maxInsertRows && rows.size() < maxInsertBytes {
			continue
		}
		s.conn.params.reset()
		for column := range rows.bufs {
			s.conn.params.values = append(s.conn.params.values, rows.array(column))
		}
		if err := s.execute(answer{to: form}, s.conn.params.values); err != nil {
			return err
		}
		rows.reset(rows.oids, arrayHeader)
	}
	return nil
}

// insertCopy leaves the pipeline for each COPY, because a COPY needs a dialogue with the server.
func (s *session) insertCopy(st *statement, text string, n int, bind func(int, store.Values)) error {
	rows := &s.conn.rows
	rows.resetCopy(st.shape.Load().ParamOIDs)
	for i := range n {
		if err := rows.addCopied(i, bind); err != nil {
			return of(st, err)
		}
		if i < n-1 && rows.size() < maxCopyBytes {
			continue
		}
		if err := s.copy(st, text, rows.copied()); err != nil {
			return err
		}
		rows.resetCopy(rows.oids)
	}
	return nil
}

func (s *session) copy(st *statement, text string, data []byte) error {
	if err := s.settle(); err != nil {
		return err
	}
	s.guard = s.guard || !st.idempotent
	s.close()
	if s.lost {
		return s.failed(of(st, errPipeline))
	}
	if err := s.wait(); err != nil {
		return s.failed(err)
	}
	_, err := s.conn.pg.CopyFrom(context.Background(), bytes.NewReader(data), text)
	s.open(context.Background())
	return s.failed(of(st, err))
}
