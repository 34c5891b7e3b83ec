package sends

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/httpapi/wire"
	"fanfare.dev/fanfare/internal/inputerror"
)

// saveAsUTF8 says how to save a list in the right encoding.
const saveAsUTF8 = "in Excel, choose Save As and then CSV UTF-8 (Comma delimited); in LibreOffice, choose the character set Unicode (UTF-8)"

const (
	// readAhead is the size of the buffer with which csv.Reader reads.
	readAhead = 4096
	// maxColumnNameBytes limits the name of a column.
	maxColumnNameBytes = 200
)

// A table reads the rows of a CSV file.
type table struct {
	rows    *csv.Reader
	source  *boundedReader
	columns []string
	address int // index of the column with addresses, or -1
	person  int // index of the column with the ids of subscribers, or -1

	extraLines int // line breaks inside the cells of the rows so far
	last       int // number of the last row as a spreadsheet shows it: cells can contain line breaks
}

// boundedReader fails if more than the bytes of a row are read before the row ends. csv.Reader would read a cell with a missing quote to the end of the file.
type boundedReader struct {
	from io.Reader
	done int64 // bytes read
	most int64 // bytes that may be read before the current row ends
}

// errLongRow is returned in the middle of a row that is too long.
var errLongRow = errors.New("the row is too long")

func (r *boundedReader) Read(b []byte) (int, error) {
	if r.done >= r.most {
		return 0, errLongRow
	}
	n, err := r.from.Read(b)
	r.done += int64(n)
	return n, err
}

// openTable reads the header of a CSV file. address is the name of the column with the addresses, "" for to or subscriber.
func openTable(body io.Reader, address string) (*table, error) {
	in := bufio.NewReaderSize(body, wire.MaxSendRowBytes)
	start, err := in.Peek(wire.MaxSendRowBytes)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if err := checkFormat(start); err != nil {
		return nil, err
	}
	t := &table{address: -1, person: -1}
	if bom := []byte("\xef\xbb\xbf"); bytes.HasPrefix(start, bom) {
		start = start[len(bom):]
		_, _ = in.Discard(len(bom)) // is in the buffer
	}
	comma := byte(0)
	if line, _, _ := bytes.Cut(start, []byte("\n")); len(bytes.TrimRight(line, "\r")) == len("sep=;") && bytes.HasPrefix(bytes.ToLower(line), []byte("sep=")) { // written by Excel
		comma = line[len("sep=")]
		_, _ = in.Discard(min(len(line)+1, len(start))) // is in the buffer
		start = start[min(len(line)+1, len(start)):]
	}
	if comma == 0 {
		comma = delimiterOf(start)
	}
	t.source = &boundedReader{from: in, most: wire.MaxSendRowBytes + readAhead}
	t.rows = csv.NewReader(t.source)
	t.rows.Comma, t.rows.FieldsPerRecord, t.rows.ReuseRecord = rune(comma), -1, true
	header, err := t.record()
	if errors.Is(err, io.EOF) {
		return nil, fileError("the list is empty", "write the column names in the first row, for example to,name")
	}
	if err != nil {
		return nil, err
	}
	return t, t.setColumns(header, address)
}

// fileError is an error about a whole list.
func fileError(message, hint string) *fanfare.Error {
	return &fanfare.Error{Code: fanfare.Invalid, Message: message, Hint: hint}
}

// checkFormat refuses files that are not CSV in UTF-8, by how they begin.
func checkFormat(start []byte) error {
	switch {
	case bytes.HasPrefix(start, []byte("PK\x03\x04")):
		return fileError("the file is an Excel workbook or another ZIP archive, not CSV", "open it and save it as CSV: "+saveAsUTF8)
	case bytes.HasPrefix(start, []byte("\xd0\xcf\x11\xe0")):
		return fileError("the file is an Excel workbook of an old version, not CSV", "open it and save it as CSV: "+saveAsUTF8)
	case bytes.HasPrefix(start, []byte("\xff\xfe")), bytes.HasPrefix(start, []byte("\xfe\xff")):
		return fileError("the file is in the encoding UTF-16, not UTF-8", saveAsUTF8)
	case bytes.IndexByte(start[:min(len(start), 1000)], 0) >= 0:
		return fileError("the file contains zero bytes: it is not CSV, or is in the encoding UTF-16", saveAsUTF8)
	}
	if lf := bytes.IndexByte(start, '\n'); lf < 0 && bytes.IndexByte(start, '\r') >= 0 && bytes.IndexByte(bytes.TrimRight(start, "\r"), '\r') >= 0 {
		return fileError("the lines of the file end with a carriage return only", saveAsUTF8)
	}
	return nil
}

// delimiterOf returns the delimiter that occurs most often in the first line outside of quotes; a comma if none does.
func delimiterOf(start []byte) byte {
	counts, quoted := [256]int{}, false
	for _, c := range start {
		if c == '"' {
			quoted = !quoted
		}
		if c == '\n' && !quoted {
			break
		}
		if !quoted {
			counts[c]++
		}
	}
	best := byte(',')
	for _, c := range []byte{';', '\t'} {
		if counts[c] > counts[best] {
			best = c
		}
	}
	return best
}

// setColumns checks the header.
func (t *table) setColumns(header []string, address string) error {
	if len(header) > wire.MaxSendColumns {
		return &fanfare.Error{Code: fanfare.TooLarge, Line: 1, Message: fmt.Sprintf("the list has %d columns; at most %d are allowed", len(header), wire.MaxSendColumns), Hint: "remove the columns that the template does not need"}
	}
	for i, name := range header {
		name = strings.TrimSpace(name)
		switch {
		case !utf8.ValidString(name):
			return &fanfare.Error{Code: fanfare.Invalid, Line: 1, Message: fmt.Sprintf("the name of column %d is not in UTF-8", i+1), Hint: saveAsUTF8}
		case name == "":
			return &fanfare.Error{Code: fanfare.Invalid, Line: 1, Message: fmt.Sprintf("column %d has no name", i+1), Hint: "write a name for each column in the first row, or delete the column"}
		case len(name) > maxColumnNameBytes || strings.ContainsAny(name, "\r\n\x00"):
			return &fanfare.Error{Code: fanfare.Invalid, Line: 1, Message: fmt.Sprintf("the name of column %d is not valid", i+1), Hint: fmt.Sprintf("write the column names in the first row: one line each, with at most %d bytes", maxColumnNameBytes)}
		case slices.Contains(t.columns, name):
			return &fanfare.Error{Code: fanfare.Invalid, Line: 1, Message: "the list has two columns " + inputerror.Quote(name), Hint: "rename or remove one of them"}
		}
		t.columns = append(t.columns, name)
	}
	if address != "" {
		if t.address = slices.Index(t.columns, address); t.address < 0 {
			return &fanfare.Error{Code: fanfare.Invalid, Line: 1, Message: "the list has no column " + inputerror.Quote(address), Hint: "its columns are " + names(t.columns)}
		}
		return nil
	}
	t.address, t.person = slices.Index(t.columns, "to"), slices.Index(t.columns, "subscriber")
	if t.address < 0 && t.person < 0 {
		return &fanfare.Error{Code: fanfare.Invalid, Line: 1, Message: "the list has no column to with the addresses", Hint: "its columns are " + names(t.columns) + "; rename the one with the addresses to \"to\", or choose it with the parameter address (--address)"}
	}
	return nil
}

// names joins the names of some columns.
func names(columns []string) string {
	const most = 10
	more := ""
	if len(columns) > most {
		more = fmt.Sprintf(" and %d more", len(columns)-most)
		columns = columns[:most]
	}
	quoted := make([]string, len(columns))
	for i, name := range columns {
		quoted[i] = inputerror.Quote(name)
	}
	return strings.Join(quoted, ", ") + more
}

// others returns the names of the columns that are values of the template.
func (t *table) others() []string {
	list := []string{}
	for i, name := range t.columns {
		if i != t.address && i != t.person {
			list = append(list, name)
		}
	}
	return list
}

// addressColumn returns the name of the column with the addresses or, without one, of that with the ids.
func (t *table) addressColumn() string {
	if t.address < 0 {
		return t.columns[t.person]
	}
	return t.columns[t.address]
}

// record returns the next record of the file.
func (t *table) record() ([]string, error) {
	t.source.most = t.rows.InputOffset() + wire.MaxSendRowBytes + readAhead
	record, err := t.rows.Read()
	if err == nil {
		line, _ := t.rows.FieldPos(0)
		t.last = line - t.extraLines
	}
	if err == nil || errors.Is(err, io.EOF) {
		return record, err
	}
	row := t.last + 1
	if at, ok := errors.AsType[*csv.ParseError](err); ok {
		row = at.StartLine - t.extraLines
		switch {
		case errors.Is(at.Err, csv.ErrBareQuote):
			return nil, &fanfare.Error{Code: fanfare.Invalid, Line: row, Message: "a cell contains a double quote, but does not begin with one", Hint: "write the cell in double quotes, and each double quote in it twice"}
		case errors.Is(at.Err, csv.ErrQuote):
			return nil, &fanfare.Error{Code: fanfare.Invalid, Line: row, Message: "a cell in double quotes does not end with one", Hint: "end the cell with a double quote, and write each double quote in it twice"}
		}
		err = at.Err
	}
	if errors.Is(err, errLongRow) {
		return nil, &fanfare.Error{Code: fanfare.TooLarge, Line: row, Message: fmt.Sprintf("the row has more than %d bytes", wire.MaxSendRowBytes), Hint: "shorten it; if it is short, a cell in double quotes does not end with one"}
	}
	return nil, err
}

// next returns the next row that is not empty, and its number. The row is valid until the next call.
func (t *table) next() (row int, cells []string, err error) {
	for {
		before := t.rows.InputOffset()
		cells, err := t.record()
		if err != nil {
			return 0, nil, err
		}
		row := t.last
		empty := true
		for _, cell := range cells {
			t.extraLines += strings.Count(cell, "\n")
			empty = empty && strings.TrimSpace(cell) == ""
		}
		if empty {
			continue
		}
		if size := t.rows.InputOffset() - before; size > wire.MaxSendRowBytes {
			return 0, nil, &fanfare.Error{Code: fanfare.TooLarge, Line: row, Message: fmt.Sprintf("the row has %d bytes; at most %d are allowed", size, wire.MaxSendRowBytes), Hint: "shorten it, or put its texts into the template"}
		}
		for i, cell := range cells {
			if !utf8.ValidString(cell) {
				column := fmt.Sprintf("column %d", i+1)
				if i < len(t.columns) {
					column = "column " + inputerror.Quote(t.columns[i])
				}
				return 0, nil, &fanfare.Error{Code: fanfare.Invalid, Line: row, Message: column + " is not in UTF-8; the list was probably saved in an old encoding", Hint: saveAsUTF8}
			}
		}
		return row, cells, nil
	}
}
