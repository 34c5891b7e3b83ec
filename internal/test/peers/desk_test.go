//go:build peers

package peers

import (
	"context"
	"sync"
	"testing"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/pipeline/deliver/smtp"
)

// patience is how long a test waits for what must come about. It decides only
// how long a failure takes.
const patience = 3 * time.Minute

// A desk hands out letters in their order and keeps what came of them.
type desk struct {
	t *testing.T

	mu       sync.Mutex
	waiting  []*fanfare.Letter
	outcomes map[*fanfare.Letter]fanfare.Outcome
}

func (d *desk) Next(context.Context, bool) (*fanfare.Letter, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.waiting) == 0 {
		return nil, nil
	}
	l := d.waiting[0]
	d.waiting = d.waiting[1:]
	return l, nil
}

func (d *desk) Release(*fanfare.Letter) bool { return true }

func (d *desk) Report(l *fanfare.Letter, o fanfare.Outcome) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, twice := d.outcomes[l]; twice {
		d.t.Errorf("%s was reported twice", l.To)
	}
	d.outcomes[l] = o
	return nil
}

func (d *desk) Return(l *fanfare.Letter) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.waiting = append([]*fanfare.Letter{l}, d.waiting...)
}

func (d *desk) Companions(dst []*fanfare.Letter, letter *fanfare.Letter, most int) []*fanfare.Letter {
	d.mu.Lock()
	defer d.mu.Unlock()
	for ; most > 0 && len(d.waiting) > 0 && d.waiting[0].Share == letter.Share; most-- {
		dst, d.waiting = append(dst, d.waiting[0]), d.waiting[1:]
	}
	return dst
}

func (d *desk) ReleaseAll(letters []*fanfare.Letter) ([]*fanfare.Letter, bool) { return letters, true }

func (d *desk) ReportAll(letters []*fanfare.Letter, outcomes []fanfare.Outcome) error {
	for i, l := range letters {
		if err := d.Report(l, outcomes[i]); err != nil {
			return err
		}
	}
	return nil
}

// left counts the letters that nobody has in hand.
func (d *desk) left() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.waiting)
}

// A sent is what came of a run: the outcome of each letter, and the errors that
// connections ended with.
type sent struct {
	outcomes map[*fanfare.Letter]fanfare.Outcome
	broken   []error
}

// enough broken connections end a run: the peer takes no letter any more.
const enough = 100

// send brings letters out over so many connections. A connection that ends with
// an error is replaced as long as there are letters.
func send(t *testing.T, driver *smtp.Driver, connections int, letters ...*fanfare.Letter) sent {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	d := &desk{t: t, waiting: append([]*fanfare.Letter(nil), letters...), outcomes: map[*fanfare.Letter]fanfare.Outcome{}}
	var wg sync.WaitGroup
	var mu sync.Mutex
	var broken []error
	for range connections {
		wg.Go(func() {
			for lost := 0; ctx.Err() == nil && d.left() > 0 && lost < enough; {
				if err := driver.Serve(ctx, d); err != nil {
					lost++
					mu.Lock()
					broken = append(broken, err)
					mu.Unlock()
				}
			}
		})
	}
	wg.Wait()
	if len(d.outcomes) != len(letters) {
		t.Fatalf("%d of %d letters have an outcome; connections ended with %v", len(d.outcomes), len(letters), broken[:min(3, len(broken))])
	}
	return sent{d.outcomes, broken}
}
