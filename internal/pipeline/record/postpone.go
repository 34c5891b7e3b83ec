package record

import (
	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/failpoint"
)

// Postpone keeps work of one day for later, without an entry: nothing was tried,
// and nothing is counted. It shares the commits of entries, and blocks until it is
// durable. Work that is put off twice for the same second is kept once.
func (r *Recorder) Postpone(day fanfare.Day, dues []fanfare.Due) error {
	if len(dues) == 0 {
		return nil
	}
	s := r.slips.Get().(*slip)
	s.day, s.putOff = day, dues
	failpoint.Hit("before-postpone")
	err := r.hand(s, 0)
	failpoint.Hit("after-postpone")
	return err
}
