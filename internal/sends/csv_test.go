package sends

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/httpapi/wire"
)

// readAll returns what a table reads of a file, in one text.
func readAll(body, address string) (string, error) {
	t, err := openTable(strings.NewReader(body), address)
	if err != nil {
		return "", err
	}
	all := fmt.Sprintf("%s %q", t.addressColumn(), t.others())
	for {
		row, cells, err := t.next()
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return all, err
		}
		all += fmt.Sprintf(" %d%q", row, cells)
	}
}

func TestTablesAreReadAsASpreadsheetShowsThem(t *testing.T) {
	for _, c := range []struct{ body, address, want string }{
		{"to,name\na@example.org,Ada\n", "", `to ["name"] 2["a@example.org" "Ada"]`},
		{"name;to\r\nAda;a@example.org\r\n", "", `to ["name"] 2["Ada" "a@example.org"]`},
		{"to\tname\na@example.org\tAda", "", `to ["name"] 2["a@example.org" "Ada"]`},
		{"\xef\xbb\xbfto;c;a,b\nx;y;z\n", "", `to ["c" "a,b"] 2["x" "y" "z"]`},
		{"sep=;\nto;name\na;b\n", "", `to ["name"] 2["a" "b"]`},
		{"sep=|\r\nto|name\r\na|b\r\n", "", `to ["name"] 2["a" "b"]`},
		{"subscriber,name\nada,Ada\n", "", `subscriber ["name"] 2["ada" "Ada"]`},
		{"to,subscriber\n,ada\n", "", `to [] 2["" "ada"]`},
		{"E-Mail,to\na@example.org,x\n", "E-Mail", `E-Mail ["to"] 2["a@example.org" "x"]`},
		// A cell with line breaks is one row; empty rows are counted and skipped.
		{"to,text\na,\"one\ntwo\r\nthree\"\nb,x\n\n,\n , \nc,y\n", "", `to ["text"] 2["a" "one\ntwo\nthree"] 3["b" "x"] 7["c" "y"]`},
		{"to,text\na\nb,x,z\n", "", `to ["text"] 2["a"] 3["b" "x" "z"]`},
		{" to , name \na,\" b \"\n", "", `to ["name"] 2["a" " b "]`},
		{"to\na\n", "", `to [] 2["a"]`},
		{"to\n", "", `to []`},
		{"\"to;x\",name\na,b\n", "to;x", `to;x ["name"] 2["a" "b"]`},
	} {
		if got, err := readAll(c.body, c.address); got != c.want || err != nil {
			t.Errorf("%q: %s, %v, want %s", c.body, got, err, c.want)
		}
	}
}

func TestFilesThatAreNotCSVInUTF8AreRefused(t *testing.T) {
	long := strings.Repeat("x", wire.MaxSendRowBytes)
	for _, c := range []struct {
		name, body, address string
		line                int
		message             string
	}{
		{"nothing", "", "", 0, "the list is empty"},
		{"a workbook", "PK\x03\x04rest", "", 0, "Excel workbook"},
		{"an old workbook", "\xd0\xcf\x11\xe0rest", "", 0, "Excel workbook of an old version"},
		{"UTF-16", "\xff\xfet\x00o\x00", "", 0, "UTF-16"},
		{"UTF-16 without a mark", "t\x00o\x00\n\x00", "", 0, "zero bytes"},
		{"old line ends", "to\ra\rb", "", 0, "carriage return"},
		{"Latin 1", "to,name\na,b\nc,M\xfcller\n", "", 3, `column "name" is not in UTF-8`},
		{"Latin 1 in the header", "to,M\xfcller\n", "", 1, "the name of column 2 is not in UTF-8"},
		{"no address", "mail,name\na,b\n", "", 1, "no column to with the addresses"},
		{"no such column", "to,name\na,b\n", "mail", 1, `no column "mail"`},
		{"the same column twice", "to,name,name\n", "", 1, `two columns "name"`},
		{"a column without a name", "to,,name\n", "", 1, "column 2 has no name"},
		{"many columns", "to" + strings.Repeat(",x", wire.MaxSendColumns) + "\n", "", 1, "201 columns"},
		{"a quote inside", "to,name\na,b\nc,d\"e\n", "", 3, "does not begin with one"},
		{"a quote that does not end", "to,name\na,b\nc,\"d\ne,f\n", "", 3, "does not end with one"},
		{"a long row", "to,name\na,b\nc," + long + "\n", "", 3, "65539 bytes"},
		{"a quote that does not end in a long file", "to,name\na,b\nc,\"" + long + long + "\n", "", 3, "more than 65536 bytes"},
		{"a long header", "to," + long + long, "", 1, "more than 65536 bytes"},
	} {
		_, err := readAll(c.body, c.address)
		e, ok := errors.AsType[*fanfare.Error](err)
		if !ok || e.Line != c.line || !strings.Contains(e.Message, c.message) || e.Hint == "" {
			t.Errorf("%s: %#v, want line %d and %q", c.name, err, c.line, c.message)
		}
	}
}

// FuzzTablesAgreeWithTheLibrary compares the cells with those that encoding/csv returns for the whole file.
func FuzzTablesAgreeWithTheLibrary(f *testing.F) {
	for _, body := range []string{"to,name\na,b\n", "to;name\n\"a\nb\";c\n\n\n;\nd;e", "\xef\xbb\xbfto\tx\ny\tz\n", "sep=,\nto,x\ny,z\n", "to\n\"\"\n\"", "to,x\r\n\"a\r\nb\",\"c\"\"d\"\r\n"} {
		f.Add(body)
	}
	f.Fuzz(func(t *testing.T, body string) {
		table, err := openTable(strings.NewReader(body), "")
		if err != nil {
			return
		}
		whole := strings.TrimPrefix(body, "\xef\xbb\xbf")
		if strings.HasPrefix(strings.ToLower(whole), "sep=") {
			_, whole, _ = strings.Cut(whole, "\n")
		}
		other := csv.NewReader(strings.NewReader(whole))
		other.Comma, other.FieldsPerRecord = table.rows.Comma, -1
		if _, err := other.Read(); err != nil {
			t.Fatalf("the header is read, but %v", err)
		}
		last := 1
		for {
			row, cells, err := table.next()
			want, wrong := other.Read()
			for wrong == nil && strings.TrimSpace(strings.Join(want, "")) == "" {
				want, wrong = other.Read()
			}
			if err != nil {
				if _, ours := errors.AsType[*fanfare.Error](err); !ours && !errors.Is(err, io.EOF) {
					t.Fatalf("an error for nobody: %v", err)
				}
				if errors.Is(err, io.EOF) != errors.Is(wrong, io.EOF) && errors.Is(err, io.EOF) {
					t.Fatalf("ends before %q, %v", want, wrong)
				}
				return
			}
			if wrong != nil || strings.Join(cells, "\x00") != strings.Join(want, "\x00") || row <= last {
				t.Fatalf("row %d after %d is %q, want %q, %v", row, last, cells, want, wrong)
			}
			last = row
		}
	})
}
