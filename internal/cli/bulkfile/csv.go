package bulkfile

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/client"
)

// A CSV turns a table of subscriptions into NDJSON, a line for a row. The
// header names the columns: the fields of a subscription; params, data and
// attributes, whose cells are JSON objects; and params.NAME, data.NAME and
// attributes.NAME. An empty cell is the same as no cell; a cell of a named member
// that is a JSON number, list, object or string in quotes, or true or false, is
// sent as such, any other as text. A column error, which a file of bad lines has,
// is passed over.
type CSV struct {
	rows   *csv.Reader
	Header []string
	from   Position
	preset client.Subscription // what a row does not say
}

var (
	Fields  = []string{"id", "topic", "channel", "to", "subscriber", "filter", "rule", "locale", "time_zone", "state", "cadence", "title", "description"}
	Objects = []string{"params", "data", "attributes"}
)

// csvReasons is the column that says why a row is in a file of bad lines.
const csvReasons = "error"

// NewCSV reads the header; nothing is sent where it is wrong.
func NewCSV(in io.Reader, preset client.Subscription) (*CSV, error) {
	buffered := bufio.NewReaderSize(in, 256<<10)
	f := &CSV{preset: preset}
	if mark, _ := buffered.Peek(len(byteOrderMark)); string(mark) == byteOrderMark {
		if _, err := buffered.Discard(len(mark)); err != nil {
			return nil, CSVError(err, 0)
		}
		f.from.Offset = int64(len(mark))
	}
	f.read(buffered)
	header, err := f.rows.Read()
	if err != nil {
		return nil, CSVError(err, 0)
	}
	for i, name := range header {
		name = strings.TrimSpace(name)
		group, member, dotted := strings.Cut(name, ".")
		known := slices.Contains(Fields, name) || slices.Contains(Objects, name) || name == csvReasons ||
			dotted && member != "" && slices.Contains(Objects, group)
		if !known || slices.Contains(f.Header, name) {
			if known {
				return nil, &fanfare.Error{Code: fanfare.Invalid, Line: 1, Column: i + 1, Message: fmt.Sprintf("duplicate column %q", name)}
			}
			return nil, &fanfare.Error{Code: fanfare.Invalid, Line: 1, Column: i + 1, Message: fmt.Sprintf("unknown column %q", name), Hint: columnHint(name)}
		}
		f.Header = append(f.Header, name)
	}
	for _, of := range []struct{ column, preset string }{{"topic", preset.Topic}, {"channel", preset.Channel}} {
		if of.preset == "" && !slices.Contains(f.Header, of.column) {
			return nil, &fanfare.Error{Code: fanfare.Invalid, Line: 1, Message: "the file has no column " + of.column, Hint: "add the column, or pass a value for all rows with --" + of.column}
		}
	}
	return f, nil
}

// columnHint says what to do about a column that is not known.
func columnHint(name string) string {
	switch lower := strings.ToLower(name); {
	case !utf8.ValidString(name) || strings.ContainsRune(name, 0):
		return "save the file as UTF-8"
	case strings.ContainsAny(name, ";\t|"):
		return "save the file with commas between the columns"
	case slices.Contains(Fields, lower) || slices.Contains(Objects, lower):
		return "did you mean " + lower + "?"
	}
	return "valid columns are " + strings.Join(append(slices.Clone(Fields), Objects...), ", ") +
		"; use attributes.NAME for subscriber attributes, data.NAME for subscription data, and params.NAME for rule parameters"
}

// ContinueAt lets the rows come from a later place of the same file.
func (f *CSV) ContinueAt(in io.Reader, from Position) {
	f.from = from
	f.read(bufio.NewReaderSize(in, 256<<10))
	f.rows.FieldsPerRecord = len(f.Header)
}

func (f *CSV) read(in io.Reader) {
	f.rows = csv.NewReader(in)
	f.rows.ReuseRecord = true
}

func (f *CSV) Next() *Chunk {
	c := &Chunk{}
	var body bytes.Buffer
	lines := json.NewEncoder(&body)
	lines.SetEscapeHTML(false)
	for c.Count() < MaxChunkLines && body.Len() < maxChunkBytes {
		cells, err := f.rows.Read()
		if err != nil && !errors.Is(err, csv.ErrFieldCount) {
			if c.Err = err; !errors.Is(err, io.EOF) {
				c.Err = CSVError(err, f.from.Line)
			}
			break
		}
		line, _ := f.rows.FieldPos(0)
		last, _ := f.rows.FieldPos(len(cells) - 1)
		c.Line = f.from.Line + last + strings.Count(cells[len(cells)-1], "\n")
		c.Offset = f.from.Offset + f.rows.InputOffset()
		at := Row{Line: f.from.Line + line, Raw: csvLine(cells)}
		if !slices.ContainsFunc(cells, func(cell string) bool { return cell != "" }) {
			continue // spreadsheets leave such rows at the end
		}
		s := f.preset
		if wrong := f.fill(&s, cells); wrong != nil {
			c.Wrong = append(c.Wrong, Refusal{at, *wrong})
			continue
		}
		if err := lines.Encode(s); err != nil {
			c.Err = err
			break
		}
		c.Rows = append(c.Rows, at)
	}
	c.Body = body.Bytes()
	return c
}

// csvLine writes a record on one line, or on several where a cell has some.
func csvLine(cells []string) []byte {
	var b bytes.Buffer
	w := csv.NewWriter(&b)
	_ = w.Write(cells) // into memory: cannot fail
	w.Flush()
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// csvCells reads what csvLine wrote.
func csvCells(line []byte) ([]string, error) {
	r := csv.NewReader(bytes.NewReader(line))
	return r.Read()
}

func (f *CSV) fill(s *client.Subscription, cells []string) *client.Member {
	if len(cells) != len(f.Header) {
		return &client.Member{Code: fanfare.Invalid, Detail: fmt.Sprintf("the row has %d cells, but the file has %d columns", len(cells), len(f.Header)),
			Hint: "put a cell that contains a comma in double quotes"}
	}
	for i, cell := range cells {
		if !utf8.ValidString(cell) {
			return &client.Member{Code: fanfare.Invalid, Pointer: "/" + f.Header[i], Detail: "the cell is not valid UTF-8", Hint: "save the file as UTF-8"}
		}
	}
	texts := map[string]*string{"id": &s.ID, "topic": &s.Topic, "channel": &s.Channel, "to": &s.To, "subscriber": &s.Subscriber,
		"filter": &s.Filter, "rule": &s.Rule, "locale": &s.Locale, "time_zone": &s.TimeZone, "state": &s.State, "cadence": &s.Cadence, "title": &s.Title, "description": &s.Description}
	objects := map[string]*json.RawMessage{"params": &s.Params, "data": &s.Data, "attributes": &s.Attributes}
	var groups map[string]map[string]json.RawMessage // of the columns with one member
	for i, cell := range cells {
		name := f.Header[i]
		switch text, whole := texts[name], objects[name]; {
		case cell == "", name == csvReasons:
		case text != nil:
			*text = cell
		case whole != nil:
			*whole = json.RawMessage(cell)
		default:
			group, member, _ := strings.Cut(name, ".")
			if groups == nil {
				groups = map[string]map[string]json.RawMessage{}
			}
			if groups[group] == nil {
				groups[group] = map[string]json.RawMessage{}
			}
			groups[group][member] = CellValue(cell)
		}
	}
	for name, object := range objects {
		var err error
		if *object, err = joinObject(*object, groups[name]); err != nil {
			return &client.Member{Code: fanfare.Invalid, Pointer: "/" + name, Detail: "the cell is not a JSON object",
				Hint: `write it as {"name":"value"}, or use a column ` + name + ".NAME"}
		}
	}
	return nil
}

// joinObject puts members into an object, over those that it has. Without any it
// stays as it was written.
func joinObject(whole json.RawMessage, members map[string]json.RawMessage) (json.RawMessage, error) {
	if whole == nil && members == nil {
		return nil, nil
	}
	all := map[string]json.RawMessage{}
	if whole != nil {
		if err := json.Unmarshal(whole, &all); err != nil {
			return nil, err
		}
	}
	if members == nil {
		return whole, nil
	}
	maps.Copy(all, members)
	return json.Marshal(all)
}

func CellValue(cell string) json.RawMessage {
	switch first := cell[0]; {
	case first == '-', first >= '0' && first <= '9', first == '[', first == '{', first == '"', cell == "true", cell == "false":
		if json.Valid([]byte(cell)) {
			return json.RawMessage(cell)
		}
	}
	text, _ := json.Marshal(cell) // a string cannot fail
	return text
}

// CSVError words an error of a table of which so many lines were before.
func CSVError(err error, before int) *fanfare.Error {
	e := &fanfare.Error{Code: fanfare.Invalid, Message: err.Error()}
	if at, ok := errors.AsType[*csv.ParseError](err); ok {
		e.Line, e.Column, e.Message = before+at.Line, at.Column, at.Err.Error()
		if errors.Is(err, csv.ErrQuote) || errors.Is(err, csv.ErrBareQuote) {
			e.Message += fmt.Sprintf(", in the row that begins on line %d", before+at.StartLine)
			e.Hint = "end a quoted cell with a double quote, and write a double quote inside the cell as two double quotes"
		}
	}
	if errors.Is(err, io.EOF) {
		e.Message, e.Hint = "the file is empty", "write the column names in the first row, for example to,topic,channel,filter"
	}
	return e
}
