package main

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"sort"
	"strings"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/client"
)

// A csvReader turns a table of subscriptions into NDJSON, a line for a row. The
// header names the columns: the fields of a subscription, and params.NAME,
// data.NAME and attributes.NAME. An empty cell is the same as no cell; a cell
// of one of these three that is a JSON number, true or false is sent as such.
type csvReader struct {
	rows    *csv.Reader
	columns []string
	preset  client.Subscription // what a row does not say

	pipe  *io.PipeReader
	lines []rowLine // where the line of a row is not that of the row before plus one
}

// rowLine says that from NDJSON line row on, rows begin at a line of the file.
type rowLine struct{ row, line int }

var csvFields = []string{"id", "topic", "channel", "to", "filter", "rule", "locale", "time_zone"}

// newCSV reads the header; nothing is sent where it is wrong.
func newCSV(in io.Reader, preset client.Subscription) (*csvReader, error) {
	buffered := bufio.NewReaderSize(in, 256<<10)
	if mark, _ := buffered.Peek(3); bytes.Equal(mark, []byte("\xef\xbb\xbf")) { // spreadsheets begin with a byte order mark
		if _, err := buffered.Discard(len(mark)); err != nil {
			return nil, csvError(err)
		}
	}
	c := &csvReader{rows: csv.NewReader(buffered), preset: preset}
	c.rows.ReuseRecord = true
	header, err := c.rows.Read()
	if err != nil {
		return nil, csvError(err)
	}
	for i, name := range header {
		name = strings.TrimSpace(name)
		group, member, dotted := strings.Cut(name, ".")
		known := slices.Contains(csvFields, name) || dotted && member != "" && slices.Contains([]string{"params", "data", "attributes"}, group)
		if !known || slices.Contains(c.columns, name) {
			what := "unknown column"
			if known {
				what = "repeated column"
			}
			return nil, &fanfare.Error{Code: fanfare.Invalid, Line: 1, Column: i + 1, Message: fmt.Sprintf("%s %q", what, name),
				Hint: "columns are " + strings.Join(csvFields, ", ") + ", params.NAME, data.NAME and attributes.NAME"}
		}
		c.columns = append(c.columns, name)
	}
	pipe, out := io.Pipe()
	c.pipe = pipe
	go func() { out.CloseWithError(c.convert(out)) }()
	return c, nil
}

// Read gives NDJSON.
func (c *csvReader) Read(b []byte) (int, error) { return c.pipe.Read(b) }

// stop ends the reading of the file before its end.
func (c *csvReader) stop() { c.pipe.CloseWithError(nil) }

func (c *csvReader) convert(w io.Writer) error {
	out := bufio.NewWriterSize(w, 256<<10)
	lines := json.NewEncoder(out)
	lines.SetEscapeHTML(false)
	shift := 0 // of the line of the file against the line that is sent
	for row := 1; ; row++ {
		cells, err := c.rows.Read()
		if err == io.EOF {
			return out.Flush()
		}
		if err != nil {
			if gone := out.Flush(); gone != nil { // what was good is put
				return gone
			}
			return csvError(err)
		}
		if line, _ := c.rows.FieldPos(0); line-row != shift {
			shift = line - row
			c.lines = append(c.lines, rowLine{row, line})
		}
		s := c.preset
		if err := c.fill(&s, cells); err != nil {
			return err
		}
		if err := lines.Encode(s); err != nil {
			return err
		}
	}
}

func (c *csvReader) fill(s *client.Subscription, cells []string) error {
	var groups map[string]map[string]json.RawMessage
	for i, cell := range cells {
		if cell == "" {
			continue
		}
		switch name := c.columns[i]; name {
		case "id":
			s.ID = cell
		case "topic":
			s.Topic = cell
		case "channel":
			s.Channel = cell
		case "to":
			s.To = cell
		case "filter":
			s.Filter = cell
		case "rule":
			s.Rule = cell
		case "locale":
			s.Locale = cell
		case "time_zone":
			s.TimeZone = cell
		default:
			group, member, _ := strings.Cut(name, ".")
			if groups == nil {
				groups = map[string]map[string]json.RawMessage{}
			}
			if groups[group] == nil {
				groups[group] = map[string]json.RawMessage{}
			}
			groups[group][member] = cellValue(cell)
		}
	}
	for group, members := range groups {
		object, err := json.Marshal(members)
		if err != nil {
			return err
		}
		switch group {
		case "params":
			s.Params = object
		case "data":
			s.Data = object
		case "attributes":
			s.Attributes = object
		}
	}
	return nil
}

func cellValue(cell string) json.RawMessage {
	first := cell[0]
	if (first == '-' || first >= '0' && first <= '9' || cell == "true" || cell == "false") && json.Valid([]byte(cell)) {
		return json.RawMessage(cell)
	}
	text, _ := json.Marshal(cell) // a string cannot fail
	return text
}

// line returns the line of the file that was sent as line row.
func (c *csvReader) line(row int) int {
	i := sort.Search(len(c.lines), func(i int) bool { return c.lines[i].row > row })
	if i == 0 {
		return row
	}
	return c.lines[i-1].line + row - c.lines[i-1].row
}

func csvError(err error) error {
	e := &fanfare.Error{Code: fanfare.Invalid, Message: err.Error()}
	if at, ok := errors.AsType[*csv.ParseError](err); ok {
		e.Line, e.Column, e.Message = at.Line, at.Column, at.Err.Error()
	}
	if errors.Is(err, io.EOF) {
		e.Message, e.Hint = "the file is empty", "the first row names the columns, such as to,topic,channel,filter"
	}
	return e
}
