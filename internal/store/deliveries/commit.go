package deliveries

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/store"
)

// Commit appends the results of one group of attempts in one transaction: the entries, the retries
// that follow from them, the completion of broadcasts whose last delivery is settled, and the
// notices for services. All entries belong to one day. If an attempt has an entry already, that
// entry stays; a repeated bounce of a delivery is stored once.
func (s *Store) Commit(ctx context.Context, of fanfare.Day, group *fanfare.Commit) error {
	completions := lastOf(group.Completions)
	counts, reasons := make([]string, len(completions)), make([]string, len(completions))
	for i := range completions {
		text, err := json.Marshal(completions[i].Progress.Counts)
		if err != nil {
			return err
		}
		counts[i] = string(text)
		if reasons[i], err = reasonsText(completions[i].Progress.Reasons); err != nil {
			return err
		}
	}
	return s.write(ctx, of, func(in store.Session) error {
		entries, err := returned(in, group)
		if err != nil {
			return err
		}
		order := byPlace(entries)
		err = in.Insert("attempts_insert", len(order), func(i int, to store.Values) { bindEntry(to, &entries[order[i]]) })
		if err != nil {
			return err
		}
		if err := keepNotices(in, entries); err != nil {
			return err
		}
		err = in.Insert("due_insert", len(group.Dues), func(i int, to store.Values) { bindDue(to, &group.Dues[i]) })
		if err != nil {
			return err
		}
		return in.Insert("complete", len(completions), func(i int, to store.Values) {
			c := &completions[i]
			to.Int64(int64(c.Seq))
			to.Text(counts[i])
			to.Text(reasons[i])
			to.Int64(nanos(c.Progress.First))
			to.Int64(nanos(c.Progress.Last))
			to.Int64(nanos(c.Progress.Completed))
		})
	})
}

// reasonsText encodes reasons for the database; none are "".
func reasonsText(reasons fanfare.Reasons) (string, error) {
	if len(reasons) == 0 {
		return "", nil
	}
	text, err := json.Marshal(reasons)
	return string(text), err
}

func readReasons(text []byte) (reasons fanfare.Reasons, err error) {
	if len(text) > 0 {
		err = json.Unmarshal(text, &reasons)
	}
	return reasons, err
}

// lastOf leaves of several completions of a broadcast the last: no statement may
// write a row twice.
func lastOf(all []fanfare.Completion) []fanfare.Completion {
	if len(all) < 2 {
		return all
	}
	at := make(map[fanfare.EventSeq]int, len(all))
	last := make([]fanfare.Completion, 0, len(all))
	for i := range all {
		place, twice := at[all[i].Seq]
		if twice {
			last[place] = all[i]
			continue
		}
		at[all[i].Seq] = len(last)
		last = append(last, all[i])
	}
	return last
}

// byPlace sorts entries by key, because inserting adjacent rows costs a database less than inserting the rows in the order
// of the answers. Entries with the same key keep their order.
func byPlace(entries []fanfare.Entry) []int {
	order := make([]int, len(entries))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(i, j int) int {
		a, b := &entries[i], &entries[j]
		if by := cmp.Compare(a.Delivery.Manifest, b.Delivery.Manifest); by != 0 {
			return by
		}
		if by := cmp.Compare(a.Delivery.Position, b.Delivery.Position); by != 0 {
			return by
		}
		return cmp.Compare(i, j)
	})
	return order
}

func bindEntry(to store.Values, e *fanfare.Entry) {
	to.Int64(int64(e.Delivery.Manifest))
	to.Int64(int64(e.Delivery.Position))
	to.Int64(int64(e.Attempt))
	to.Int64(int64(e.State))
	to.Int64(int64(e.Code))
	to.Int64(e.At.UnixNano())
	to.Int64(nanos(e.NextAt))
	to.Text(e.Text)
	to.Text(e.Relay)
	to.Text(e.Address)
}

func bindDue(to store.Values, due *fanfare.Due) {
	to.Int64(due.At.Unix())
	to.Int64(int64(due.Slice.Manifest))
	to.Int64(int64(due.Slice.Positions[0]))
	to.Int64(int64(due.Channel))
	to.Int64(int64(due.Lane))
	to.Int64(int64(due.Slice.Attempt))
	to.Bytes(appendPositions(nil, due.Slice.Positions))
	to.Int64(int64(due.Why))
	to.Text(due.Destination)
}
