package store

import "math"

// Visit reads all rows of a table in the order of its key, at most limit with one statement, so that each statement is short. The rows have
// the columns of the table.
func (t *Table) Visit(s Session, limit int, visit func(Row) error) error {
	after := make([]any, 0, t.Key+1)
	for _, c := range t.Columns[:t.Key] {
		switch c.Kind {
		case IntColumn:
			after = append(after, int64(math.MinInt64))
		case TextColumn:
			after = append(after, "")
		default:
			after = append(after, []byte{})
		}
	}
	for {
		found := 0
		var last []any
		err := s.Each("copy_"+t.Name, func(r Row) error {
			found++
			last = last[:0]
			for i, c := range t.Columns[:t.Key] {
				switch c.Kind {
				case IntColumn:
					last = append(last, r.Int64(i))
				case TextColumn:
					last = append(last, r.Text(i))
				default:
					last = append(last, r.Bytes(i))
				}
			}
			return visit(r)
		}, append(after[:t.Key:t.Key], int64(limit))...)
		if err != nil || found < limit {
			return err
		}
		after = last
	}
}
