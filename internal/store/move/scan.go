package move

import (
	"crypto/sha256"
	"encoding/hex"
	"math"

	"fanfare.dev/fanfare/internal/store"
)

const (
	pageBytes = 4 << 20 // approximate bytes of a page; rows beyond it are read again
)

// scan visits the rows of a table in the order of its key, page by page, so that a statement is
// short for a table of any size. The receiver owns the pages.
func scan(s store.Session, t *store.Table, visit func(*rows) error) error {
	after, most := before(t), t.PageRows()
	limit := most
	for {
		page, found := &rows{}, 0
		err := s.Each("copy_"+t.Name, func(r store.Row) error {
			if found++; len(page.b) < pageBytes {
				page.add(r, t.Columns)
			}
			return nil
		}, append(after, int64(limit))...)
		if err != nil {
			return err
		}
		if page.len() == 0 {
			return nil
		}
		after = page.args(page.len()-1, t.Key)
		if err := visit(page); err != nil {
			return err
		}
		switch {
		case page.len() < found:
			limit = page.len()
		case found < limit:
			return nil
		default:
			limit = min(2*limit, most)
		}
	}
}

// before is a key that sorts before all others.
func before(t *store.Table) []any {
	var key []any
	for _, column := range t.Columns[:t.Key] {
		switch column.Kind {
		case store.IntColumn:
			key = append(key, int64(math.MinInt64))
		case store.TextColumn:
			key = append(key, "")
		default:
			key = append(key, []byte{})
		}
	}
	return key
}

// A Sum represents the content of a table: the number of its rows, and a hash of all rows in the
// order of their keys. It is the same in every database.
type Sum struct {
	Rows int64
	Hash string // SHA-256, hexadecimal
}

// nothing is the sum of a table without rows.
var nothing = Sum{Hash: hex.EncodeToString(sha256.New().Sum(nil))}

// sum reads a whole table.
func sum(s store.Session, t *store.Table, progress *Progress) (Sum, error) {
	hash := sha256.New()
	var rowCount int64
	err := scan(s, t, func(page *rows) error {
		hash.Write(page.b)
		rowCount += int64(page.len())
		progress.add(page)
		return nil
	})
	return Sum{rowCount, hex.EncodeToString(hash.Sum(nil))}, err
}

// sums reads all tables of a part.
func sums(s store.Session, tables []store.Table, progress *Progress) ([]Sum, error) {
	list := make([]Sum, len(tables))
	for i := range tables {
		var err error
		if list[i], err = sum(s, &tables[i], progress); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// Compared is a table on both sides.
type Compared struct {
	Part, Table string
	From, To    Sum
}

// Equal reports whether both sides have the same content.
func (c *Compared) Equal() bool { return c.From == c.To }

func compared(part string, tables []store.Table, from, to []Sum) []Compared {
	list := make([]Compared, len(tables))
	for i := range tables {
		list[i] = Compared{part, tables[i].Name, from[i], to[i]}
	}
	return list
}
