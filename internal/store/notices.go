package store

// A Notice is what services are to be told of, as it was kept together.
type Notice struct {
	ID   int64 // ascending in its part, and never given out again
	At   int64 // of the first that it has, Unix nanoseconds
	Blob []byte
}

// KeepNotice keeps one in the transaction that keeps what it tells of. A part that
// has notices has the statements notices_*.
func KeepNotice(in Session, at int64, entries int, blob []byte) error {
	id, err := one(in, "notices_next")
	if err != nil {
		return err
	}
	return in.Insert("notices_insert", 1, func(_ int, to Values) {
		to.Int64(id)
		to.Int64(at)
		to.Int64(int64(entries))
		to.Bytes(blob)
	})
}

// one is the number that a statement returns, 0 without a row.
func one(in Session, statement string) (n int64, err error) {
	err = in.Each(statement, func(r Row) error {
		n = r.Int64(0)
		return nil
	})
	return n, err
}

// A Transaction is Part.Read or Part.Write.
type Transaction func(func(Session) error) error

// PlanNotices returns what is to be told next of a part, the oldest first, none if
// nothing is; of so many notices at most. It is the same until ToldNotices, also after
// a restart, whatever has come since.
func PlanNotices(read, write Transaction, most int) (plan []Notice, err error) {
	err = read(func(in Session) error {
		plan = nil
		planned, err := one(in, "notices_position")
		if err != nil || planned == 0 {
			return err
		}
		plan, err = notices(in, "notices_up_to", planned)
		return err
	})
	if err != nil || len(plan) > 0 {
		return plan, err
	}
	err = read(func(in Session) (err error) {
		plan, err = notices(in, "notices", int64(most))
		return err
	})
	if err != nil || len(plan) == 0 {
		return nil, err
	}
	return plan, write(func(in Session) error { return in.Run("notices_plan", plan[len(plan)-1].ID) })
}

// notices are those that a statement reads.
func notices(in Session, statement string, args ...any) (all []Notice, err error) {
	err = in.Each(statement, func(r Row) error {
		all = append(all, Notice{r.Int64(0), r.Int64(1), r.Bytes(3)})
		return nil
	}, args...)
	return all, err
}

// ToldNotices forgets a plan, by the id of its last: what it has was told.
func ToldNotices(write Transaction, last int64) error {
	return write(func(in Session) error { return in.Run("notices_told", last) })
}

// WaitingNotices counts what is not told yet, and returns when the first of it was.
func WaitingNotices(read Transaction) (entries, since int64, err error) {
	err = read(func(in Session) error {
		return in.Each("notices_waiting", func(r Row) error {
			entries, since = r.Int64(0), r.Int64(1)
			return nil
		})
	})
	return entries, since, err
}
