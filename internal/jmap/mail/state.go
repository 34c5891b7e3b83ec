package mail

import (
	"cmp"
	"errors"
	"slices"
	"strconv"
	"strings"

	"fanfare.dev/fanfare/internal/jmap/core"
	"fanfare.dev/fanfare/internal/mailbox"
)

// A position is a place in the order of changes: all changes with a lower ModSeq are before it, and of those with the same ModSeq the ones
// of records up to a number. A state is a position; the usual one has all records of its ModSeq.
type position struct {
	seq    mailbox.ModSeq
	record int64
}

const allRecords = 1<<63 - 1

// StateOf returns the state of an account as a string.
func StateOf(seq mailbox.ModSeq) string { return position{seq, allRecords}.String() }

func (p position) String() string {
	text := strconv.FormatInt(int64(p.seq), 10)
	if p.record != allRecords {
		text += "." + strconv.FormatInt(p.record, 10)
	}
	return text
}

func (p position) before(q position) bool {
	return p.seq < q.seq || p.seq == q.seq && p.record < q.record
}

// since is the ModSeq after which the store must list changes.
func (p position) since() mailbox.ModSeq {
	if p.record == allRecords {
		return p.seq
	}
	return p.seq - 1
}

var errCannotCalculate = core.Fail(core.CannotCalculateChanges, "the changes since this state are not known any more; read everything again")

func parseState(text string) (position, error) {
	seq, record, partial := strings.Cut(text, ".")
	p := position{record: allRecords}
	n, err := strconv.ParseUint(seq, 10, 62)
	if err == nil && partial {
		var r uint64
		r, err = strconv.ParseUint(record, 10, 62)
		p.record = int64(r)
	}
	p.seq = mailbox.ModSeq(n)
	if err != nil || p.String() != text || partial && p.seq == 0 {
		return p, errCannotCalculate
	}
	return p, nil
}

// A kind of change of a record.
type kind uint8

const (
	created kind = iota
	updated
	destroyed
)

// An event is a change of a record at a position.
type event struct {
	at   position
	kind kind
}

// changesOf makes the result of /changes. events are after since, at most one for each record; id names a record.
func changesOf(a *core.ChangesArguments, since position, state mailbox.ModSeq, events []event, id func(int64) core.ID) (*core.ChangesResult, error) {
	most, err := a.Check()
	if err != nil {
		return nil, err
	}
	slices.SortFunc(events, func(x, y event) int {
		return cmp.Or(cmp.Compare(x.at.seq, y.at.seq), cmp.Compare(x.at.record, y.at.record))
	})
	r := &core.ChangesResult{AccountID: a.AccountID, OldState: since.String(), NewState: StateOf(state), Created: []core.ID{}, Updated: []core.ID{}, Destroyed: []core.ID{}}
	if most > 0 && len(events) > most {
		events = events[:most]
		r.More, r.NewState = true, events[most-1].at.String()
	}
	for _, e := range events {
		switch name := id(e.at.record); e.kind {
		case created:
			r.Created = append(r.Created, name)
		case updated:
			r.Updated = append(r.Updated, name)
		case destroyed:
			r.Destroyed = append(r.Destroyed, name)
		}
	}
	return r, nil
}

// A history collects the events of records after a position.
type history struct {
	since  position
	events map[int64]event
}

func newHistory(since position) *history { return &history{since, map[int64]event{}} }

// put notes what happened to a record. A record that was created after the position is reported at the time of its creation, because a
// client that stops before its last change does not know it otherwise.
func (h *history) put(record int64, createdAt, changedAt mailbox.ModSeq, gone bool) {
	at := position{changedAt, record}
	if !h.since.before(at) {
		return
	}
	made := position{createdAt, record}
	switch isNew := h.since.before(made); {
	case gone && isNew: // nobody has seen it
	case gone:
		h.events[record] = event{at, destroyed}
	case isNew:
		h.events[record] = event{made, created}
	default:
		h.events[record] = event{at, updated}
	}
}

func (h *history) list() []event {
	list := make([]event, 0, len(h.events))
	for _, e := range h.events {
		list = append(list, e)
	}
	return list
}

// isOld reports whether an error of the store says that its log does not reach back.
func isOld(err error) bool { return errors.Is(err, mailbox.ErrOldModSeq) }
