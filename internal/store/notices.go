package store

// A Notice is a group of changes that services are notified about, as they were stored together.
type Notice struct {
	ID   int64 // ascending within its part and never reused
	At   int64 // time of its first change, Unix nanoseconds
	Blob []byte
}

// KeepNotice stores a notice in the transaction that stores the changes. A part with notices has the statements notices_*.
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

// one returns the number that a statement returns, or 0 without a row.
func one(in Session, statement string) (n int64, err error) {
	err = in.Each(statement, func(r Row) error {
		n = r.Int64(0)
		return nil
	})
	return n, err
}

// A Transaction is Part.Read or Part.Write.
type Transaction func(func(Session) error) error

// PlanNotices returns the oldest notices of a part that have not been delivered, at most so many. Until ToldNotices is called it returns the
// same notices, also after a restart and when newer ones exist.
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

// notices returns the notices that a statement reads.
func notices(in Session, statement string, args ...any) (all []Notice, err error) {
	err = in.Each(statement, func(r Row) error {
		all = append(all, Notice{r.Int64(0), r.Int64(1), r.Bytes(3)})
		return nil
	}, args...)
	return all, err
}

// ToldNotices deletes the notices of a plan after delivery, up to the id of its last notice.
func ToldNotices(write Transaction, last int64) error {
	return write(func(in Session) error { return in.Run("notices_told", last) })
}

// WaitingNotices returns the number of undelivered notices and the time of the first change in the oldest.
func WaitingNotices(read Transaction) (entries, since int64, err error) {
	err = read(func(in Session) error {
		return in.Each("notices_waiting", func(r Row) error {
			entries, since = r.Int64(0), r.Int64(1)
			return nil
		})
	})
	return entries, since, err
}
