package bulkfile

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/client"
)

// RecipientLines reads NDJSON.
func RecipientLines(in io.Reader) ([]client.To, error) {
	list := []client.To{}
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 1<<20)
	for line := 1; lines.Scan(); line++ {
		if len(bytes.TrimSpace(lines.Bytes())) == 0 {
			continue
		}
		var to client.To
		d := json.NewDecoder(bytes.NewReader(lines.Bytes()))
		d.DisallowUnknownFields()
		if err := d.Decode(&to); err != nil {
			return nil, &fanfare.Error{Code: fanfare.Invalid, Line: line, Message: strings.TrimPrefix(err.Error(), "json: "), Hint: `write each line as {"to":"ada@example.com","data":{"name":"Ada"}}`}
		}
		list = append(list, to)
	}
	return list, lines.Err()
}

// RecipientRows reads a table: the columns to and subscriber say who it is, all
// others are data of that recipient.
func RecipientRows(in io.Reader) ([]client.To, error) {
	text, err := io.ReadAll(in)
	if err != nil {
		return nil, err
	}
	rows := csv.NewReader(bytes.NewReader(bytes.TrimPrefix(text, []byte("\xef\xbb\xbf"))))
	columns, err := rows.Read()
	if err != nil {
		return nil, recipientError(err)
	}
	for i := range columns {
		columns[i] = strings.TrimSpace(columns[i])
	}
	if !slices.Contains(columns, "to") && !slices.Contains(columns, "subscriber") {
		return nil, &fanfare.Error{Code: fanfare.Invalid, Line: 1, Message: "the file has neither a column to nor a column subscriber", Hint: "write the column names in the first row, for example to,name"}
	}
	list := []client.To{}
	for {
		cells, err := rows.Read()
		if errors.Is(err, io.EOF) {
			return list, nil
		}
		if err != nil {
			return nil, recipientError(err)
		}
		var to client.To
		data := map[string]json.RawMessage{}
		for i, cell := range cells {
			switch {
			case columns[i] == "to":
				to.To = strings.TrimSpace(cell)
			case columns[i] == "subscriber":
				to.Subscriber = strings.TrimSpace(cell)
			case cell != "":
				data[columns[i]] = CellValue(cell)
			}
		}
		if to.Data, err = json.Marshal(data); err != nil {
			return nil, err
		}
		list = append(list, to)
	}
}

func recipientError(err error) error {
	e := CSVError(err, 0)
	if errors.Is(err, io.EOF) {
		e.Hint = "write the column names in the first row, for example to,name"
	}
	return e
}
