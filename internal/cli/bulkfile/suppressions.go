package bulkfile

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"slices"
	"strings"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/client"
)

// TableRows says on which line of a table the lines stand that were made of it.
type TableRows []int

// At returns the line of the table; a nil TableRows, as of NDJSON, changes nothing.
func (r *TableRows) At(line int) int {
	if r == nil || line < 1 || line > len(*r) {
		return line
	}
	return (*r)[line-1]
}

// InTable gives an error that names a line that was sent the line of the table.
func InTable(err error, rows *TableRows) error {
	e, ok := errors.AsType[*fanfare.Error](err)
	if !ok || e.Line == 0 {
		return err
	}
	at := *e
	at.Line = rows.At(e.Line)
	return &at
}

// SuppressionLines turns a file into the lines of an import.
func SuppressionLines(in io.Reader, name, format string, preset *client.Suppression) (io.ReadCloser, *TableRows, error) {
	buffered := bufio.NewReaderSize(in, 256<<10)
	reader, writer := io.Pipe()
	made := &madeLines{reader, make(chan struct{})}
	if format == "csv" || format == "" && strings.HasSuffix(strings.ToLower(name), ".csv") {
		t, err := newSuppressionTable(buffered, preset)
		if err != nil {
			return nil, nil, err
		}
		rows := &TableRows{}
		go made.by(writer, func(w io.Writer) error { return t.write(w, rows) })
		return made, rows, nil
	}
	go made.by(writer, func(w io.Writer) error { return presetLines(w, buffered, preset) })
	return made, nil, nil
}

// madeLines are lines that are made while they are read.
type madeLines struct {
	*io.PipeReader
	done chan struct{}
}

func (m *madeLines) by(w *io.PipeWriter, write func(io.Writer) error) {
	defer close(m.done)
	w.CloseWithError(write(w))
}

// Close returns when no more are made.
func (m *madeLines) Close() error {
	err := m.PipeReader.Close()
	<-m.done
	return err
}

// presetLines copies lines, and says of each what it does not say itself. One that
// is no object goes as it is: the server names what is wrong with it.
func presetLines(w io.Writer, in *bufio.Reader, preset *client.Suppression) error {
	out := bufio.NewWriter(w)
	for {
		line, err := in.ReadBytes('\n')
		var fields map[string]json.RawMessage
		if json.Unmarshal(line, &fields) == nil && fields != nil {
			for field, value := range map[string]string{"reason": preset.Reason, "source": preset.Source} {
				if _, says := fields[field]; !says && value != "" {
					fields[field], _ = json.Marshal(value) // a string cannot fail
				}
			}
			if line, _ = json.Marshal(fields); line != nil {
				line = append(line, '\n')
			}
		}
		if _, wrong := out.Write(line); wrong != nil {
			return wrong
		}
		if errors.Is(err, io.EOF) {
			return out.Flush()
		}
		if err != nil {
			return err
		}
	}
}

// A suppressionTable is a list in CSV, ours or that of another system.
type suppressionTable struct {
	rows   *csv.Reader
	column map[string]int
	preset *client.Suppression
}

// addressColumns are the names under which others have the address, in lower case.
var addressColumns = []string{"address", "email", "email address", "email_address", "recipient"}

func newSuppressionTable(in *bufio.Reader, preset *client.Suppression) (*suppressionTable, error) {
	if mark, _ := in.Peek(3); bytes.Equal(mark, []byte("\xef\xbb\xbf")) { // spreadsheets begin with a byte order mark
		_, _ = in.Discard(len(mark)) // it was peeked at
	}
	t := &suppressionTable{rows: csv.NewReader(in), column: map[string]int{}, preset: preset}
	t.rows.FieldsPerRecord, t.rows.LazyQuotes = -1, true
	header, err := t.rows.Read()
	if err != nil {
		return nil, CSVError(err, 0)
	}
	for i, name := range header {
		name = strings.ToLower(strings.TrimSpace(name))
		if slices.Contains(addressColumns, name) {
			name = "address"
		}
		if _, twice := t.column[name]; !twice {
			t.column[name] = i
		}
	}
	_, addresses := t.column["address"]
	if _, hashes := t.column["hash"]; !addresses && !hashes {
		return nil, &fanfare.Error{Code: fanfare.Invalid, Line: 1, Message: "the file has no address column",
			Hint: "use one of the column names " + strings.Join(addressColumns, ", ")}
	}
	return t, nil
}

func (t *suppressionTable) cell(cells []string, name string) string {
	if i, ok := t.column[name]; ok && i < len(cells) {
		return strings.TrimSpace(cells[i])
	}
	return ""
}

// ourReasons are those that a table may name.
var ourReasons = []string{"soft_bounces", "imported", "unsubscribed", "hard_bounce", "manual", "complaint", "erased"}

func (t *suppressionTable) write(w io.Writer, rows *TableRows) error {
	out := bufio.NewWriter(w)
	lines := json.NewEncoder(out)
	for {
		cells, err := t.rows.Read()
		if errors.Is(err, io.EOF) {
			return out.Flush()
		}
		if err != nil {
			return CSVError(err, 0)
		}
		s := *t.preset
		s.Address, s.Hash = t.cell(cells, "address"), t.cell(cells, "hash")
		if reason := t.cell(cells, "reason"); slices.Contains(ourReasons, reason) {
			s.Reason = reason
		}
		if source := t.cell(cells, "source"); source != "" {
			s.Source = source
		}
		s.Until, _ = time.Parse(time.RFC3339, t.cell(cells, "until")) // of another form: for good
		if s.Address == "" && s.Hash == "" && len(cells) < 2 {
			continue // an empty line
		}
		line, _ := t.rows.FieldPos(0)
		*rows = append(*rows, line)
		if err := lines.Encode(s); err != nil {
			return err
		}
	}
}

// WriteSuppressions writes the list as CSV.
func WriteSuppressions(w io.Writer, all iter.Seq2[client.Suppression, error]) (count int64, err error) {
	table := csv.NewWriter(w)
	if err := table.Write([]string{"address", "reason", "source", "at", "until", "hash"}); err != nil {
		return 0, err
	}
	for s, err := range all {
		if err != nil {
			return count, err
		}
		until := ""
		if !s.Until.IsZero() {
			until = s.Until.Format(time.RFC3339)
		}
		if err := table.Write([]string{s.Address, s.Reason, s.Source, s.At.Format(time.RFC3339), until, s.Hash}); err != nil {
			return count, err
		}
		count++
	}
	table.Flush()
	return count, table.Error()
}
