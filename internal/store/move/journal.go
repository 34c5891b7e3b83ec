package move

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"sync"
	"sync/atomic"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/store"
)

// A journal holds the transactions that were committed in a part since a moment, in their order,
// until they are replayed in another database. It is a file without a name, so it ends with the
// process, like the move. Only the move needs it, so it is not synced.
type journal struct {
	order  turn // held by the writer, so that transactions are journaled in commit order
	tx     recording
	entry  []byte
	budget *budget

	mu       sync.Mutex
	file     *os.File
	appended int64 // bytes, since the beginning of the journal
	taken    int64
	base     int64 // where the file begins
	until    int64 // position up to which entries may be taken
	limit    int64 // of the bytes that wait; 0: only the budget limits them
	over     error // why the journal has ended
	changed  chan struct{}
}

// A budget is the disk space that all journals of a move may use together.
type budget struct {
	left atomic.Int64
	dir  string
}

func newJournal(b *budget) *journal {
	return &journal{order: newTurn(), budget: b, until: math.MaxInt64, changed: make(chan struct{})}
}

// tell wakes all waiters. mu is held.
func (j *journal) tell() {
	close(j.changed)
	j.changed = make(chan struct{})
}

// await waits until cond returns true; cond is called with mu held.
func (j *journal) await(ctx context.Context, cond func() bool) error {
	for {
		j.mu.Lock()
		ok, changed := cond(), j.changed
		j.mu.Unlock()
		if ok {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// keep runs a transaction in part and, if it commits, appends it to the journal. If the append
// fails, the move ends and the writer continues.
func (j *journal) keep(ctx context.Context, part store.Part, way byte, fn func(store.Session) error) error {
	if err := j.order.take(ctx); err != nil {
		return err
	}
	defer j.order.Unlock()
	err := j.await(ctx, func() bool { return j.over != nil || j.limit == 0 || j.appended-j.taken < j.limit })
	if err != nil {
		return err
	}
	ran := errUnrun
	recorded := func(s store.Session) error {
		j.tx.begin(s, way)
		ran = fn(&j.tx)
		return ran
	}
	if way == wayErase {
		err = part.Erase(ctx, recorded)
	} else {
		err = part.Write(ctx, recorded)
	}
	switch {
	case err != nil && ran == nil: // also after store.ErrAway: an idempotent transaction may have been committed
		j.fail(fmt.Errorf("a transaction failed, and it is unknown whether it was committed: %w", err))
	case err == nil && !j.tx.clean:
		j.fail(errors.New("a transaction was committed although one of its statements had failed"))
	case err == nil && j.tx.err != nil:
		j.fail(j.tx.err)
	case err == nil:
		j.append(j.tx.b)
	}
	return err
}

var errUnrun = errors.New("the transaction was not started")

// append adds a committed transaction.
func (j *journal) append(transaction []byte) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.over != nil {
		return
	}
	j.entry = append(binary.AppendUvarint(j.entry[:0], uint64(len(transaction))), transaction...)
	size := int64(len(j.entry))
	err := j.open()
	if err == nil && j.budget.left.Add(-size) < 0 {
		err = &fanfare.Error{Code: fanfare.Conflict, Message: "the journal of the move is full because too much data was written during the move",
			Hint: "move the data when there is less load, or stop the server and run fanfare migrate"}
	}
	if err == nil {
		_, err = j.file.WriteAt(j.entry, j.appended-j.base)
	}
	if err != nil {
		j.over = fmt.Errorf("write to the journal of the move: %w", err)
	}
	j.appended += size
	j.tell()
}

func (j *journal) open() error {
	if j.file != nil {
		return nil
	}
	f, err := os.CreateTemp(j.budget.dir, "move-*.journal")
	if err != nil {
		return err
	}
	j.file = f
	return os.Remove(f.Name())
}

// fail ends the journal, and with it the move.
func (j *journal) fail(err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.over == nil {
		j.over = err
	}
	j.tell()
}

// end returns its position: all transactions so far are before it.
func (j *journal) end() int64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.appended
}

func (j *journal) lag() int64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.appended - j.taken
}

// hold limits the bytes that wait for the target to n; beyond it writers wait. 0 means no limit.
func (j *journal) hold(n int64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.limit = n
	j.tell()
}

// stopAt limits reading to a position, which is the end of a transaction.
func (j *journal) stopAt(position int64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.until = position
	j.tell()
}

// reached waits until everything before a position is replayed.
func (j *journal) reached(ctx context.Context, position int64) error {
	var over error
	err := j.await(ctx, func() bool { over = j.over; return over != nil || j.taken >= position })
	return errors.Join(err, over)
}

// next reads whole transactions that were not read yet, up to about most bytes. It waits for the
// first one.
func (j *journal) next(ctx context.Context, most int64) ([]byte, error) {
	var over error
	var n, at int64
	err := j.await(ctx, func() bool {
		over, n, at = j.over, min(j.appended, j.until)-j.taken, j.taken-j.base
		return over != nil || n > 0
	})
	if err := errors.Join(err, over); err != nil {
		return nil, err
	}
	b := make([]byte, min(n, most))
	if _, err := j.file.ReadAt(b, at); err != nil {
		return nil, err
	}
	return j.whole(b, at, n)
}

// whole cuts b, which was read at an offset, after its last complete transaction. If the first
// transaction is longer than b, it reads the rest of it.
func (j *journal) whole(b []byte, at, n int64) ([]byte, error) {
	end := int64(0)
	for {
		size, head := binary.Uvarint(b[end:])
		if head <= 0 {
			break
		}
		next := end + int64(head) + int64(size)
		if next > int64(len(b)) {
			if end > 0 {
				break
			}
			if next > n {
				return nil, errors.New("the journal of the move ends in the middle of a transaction")
			}
			b = make([]byte, next)
			_, err := j.file.ReadAt(b, at)
			return b, err
		}
		end = next
	}
	return b[:end], nil
}

// done records that n bytes are replayed. It empties a file that is replayed completely.
func (j *journal) done(n int64) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.taken += n
	j.budget.left.Add(n)
	j.tell()
	if j.taken < j.appended || j.file == nil {
		return nil
	}
	j.base = j.taken
	return j.file.Truncate(0)
}

func (j *journal) close() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.over == nil {
		j.over = errEnded
	}
	j.tell()
	if j.file == nil {
		return nil
	}
	j.budget.left.Add(j.appended - j.taken)
	return j.file.Close()
}

var errEnded = errors.New("the move has ended")
