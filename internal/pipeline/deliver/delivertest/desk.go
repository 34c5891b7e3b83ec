package delivertest

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"

	"fanfare.dev/fanfare"
)

// A Desk hands out letters and holds drivers to their side of the contract. What
// a driver does wrong is said by Check.
type Desk struct {
	// Set before the first letter is handed out.
	Refuse  func(*fanfare.Letter) bool  // what Release says no to
	Reports func(*fanfare.Letter) error // what Report does before it returns
	Panics  func(*fanfare.Letter)       // what Release and ReleaseAll do before they answer
	Blocks  bool                        // Next waits for more letters, instead of saying that there are none
	Any     bool                        // letters of different shares may leave together: they replace themselves

	mu       sync.Mutex
	waiting  []*fanfare.Letter
	hands    map[*fanfare.Letter]*hand
	outcomes map[fanfare.DeliveryRef]fanfare.Outcome
	returned map[fanfare.DeliveryRef]int
	refused  map[fanfare.DeliveryRef]bool
	idle     chan struct{} // gets a token when a connection waits
	wrong    []string
}

// A hand is a letter in the hands of a connection.
type hand struct {
	seat     *seat
	released bool
}

// NewDesk returns a desk with letters.
func NewDesk(letters ...*fanfare.Letter) *Desk {
	return &Desk{
		waiting: letters, hands: map[*fanfare.Letter]*hand{}, outcomes: map[fanfare.DeliveryRef]fanfare.Outcome{},
		returned: map[fanfare.DeliveryRef]int{}, refused: map[fanfare.DeliveryRef]bool{}, idle: make(chan struct{}, 1),
	}
}

// Seat is the desk as one call of Serve sees it.
func (d *Desk) Seat() fanfare.Desk { return &seat{d} }

var _ fanfare.Companions = (*seat)(nil)

type seat struct{ desk *Desk }

func (d *Desk) blame(format string, args ...any) {
	d.wrong = append(d.wrong, fmt.Sprintf(format, args...))
}

// Next hands out the next letter.
func (s *seat) Next(ctx context.Context, wait bool) (*fanfare.Letter, error) {
	d := s.desk
	d.mu.Lock()
	if len(d.waiting) > 0 && ctx.Err() == nil {
		letter := d.waiting[0]
		d.waiting = d.waiting[1:]
		d.hands[letter] = &hand{seat: s}
		d.mu.Unlock()
		return letter, nil
	}
	d.mu.Unlock()
	if wait && d.Blocks {
		select {
		case d.idle <- struct{}{}:
		default:
		}
		<-ctx.Done()
	}
	return nil, nil
}

// Release lets a letter go. The connection that asks may have no other one that
// was let go and not reported.
func (s *seat) Release(letter *fanfare.Letter) bool {
	d := s.desk
	if d.Panics != nil {
		d.Panics(letter)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	held := d.hands[letter]
	if held == nil || held.seat != s {
		d.blame("%s was released by a connection that does not have it", letter.Delivery)
		return false
	}
	if held.released {
		d.blame("%s was released twice", letter.Delivery)
		return true
	}
	for other, h := range d.hands {
		if h.seat == s && h.released && (other.Share == 0 || other.Share != letter.Share) {
			d.blame("%s was released before %s was reported", letter.Delivery, other.Delivery)
		}
	}
	if d.Refuse != nil && d.Refuse(letter) {
		d.refused[letter.Delivery] = true
		d.over(letter)
		return false
	}
	held.released = true
	return true
}

// Companions hands out the letters that are next and have the same share.
func (s *seat) Companions(dst []*fanfare.Letter, letter *fanfare.Letter, most int) []*fanfare.Letter {
	d := s.desk
	d.mu.Lock()
	defer d.mu.Unlock()
	if held := d.hands[letter]; held == nil || held.seat != s || letter.Share == 0 {
		d.blame("%s was to have companions, and the connection does not have it, or it is nobody else's", letter.Delivery)
		return dst
	}
	for ; most > 0 && len(d.waiting) > 0 && d.waiting[0].Share == letter.Share; most-- {
		d.hands[d.waiting[0]] = &hand{seat: s}
		dst, d.waiting = append(dst, d.waiting[0]), d.waiting[1:]
	}
	return dst
}

// ReleaseAll lets all of them go, or none.
func (s *seat) ReleaseAll(letters []*fanfare.Letter) (left []*fanfare.Letter, released bool) {
	d := s.desk
	if d.Panics != nil {
		d.Panics(letters[0])
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, letter := range letters {
		held := d.hands[letter]
		oneMessage := letter.Share != 0 && letter.Share == letters[0].Share
		if held == nil || held.seat != s || held.released || !oneMessage && !d.Any {
			d.blame("%s was released with others and is not the connection's, or not one message with them", letter.Delivery)
			return nil, false
		}
		if d.Refuse == nil || !d.Refuse(letter) {
			left = append(left, letter)
			continue
		}
		d.refused[letter.Delivery] = true
		d.over(letter)
	}
	if released = len(left) == len(letters); released {
		for other, h := range d.hands {
			if h.seat == s && h.released {
				d.blame("%s was released before %s was reported", letters[0].Delivery, other.Delivery)
			}
		}
		for _, letter := range letters {
			d.hands[letter].released = true
		}
	}
	return left, released
}

// ReportAll keeps what came of each.
func (s *seat) ReportAll(letters []*fanfare.Letter, outcomes []fanfare.Outcome) error {
	for i, letter := range letters {
		if err := s.Report(letter, outcomes[i]); err != nil {
			return err
		}
	}
	return nil
}

// Report keeps what came of a letter.
func (s *seat) Report(letter *fanfare.Letter, outcome fanfare.Outcome) error {
	d := s.desk
	if d.Reports != nil {
		if err := d.Reports(letter); err != nil {
			return err
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	held := d.hands[letter]
	switch {
	case held == nil || held.seat != s:
		d.blame("%s was reported by a connection that does not have it", letter.Delivery)
		return nil
	case !held.released:
		d.blame("%s was reported and not released", letter.Delivery)
	}
	if outcome.At.IsZero() || outcome.Relay == "" || outcome.Text == "" || len(outcome.Text) > 512 {
		d.blame("the outcome of %s does not tell when, by whom and what: %+v", letter.Delivery, outcome)
	}
	d.outcomes[letter.Delivery] = outcome
	d.over(letter)
	return nil
}

// Return takes back a letter of which nothing was written, in front of the others.
func (s *seat) Return(letter *fanfare.Letter) {
	d := s.desk
	d.mu.Lock()
	defer d.mu.Unlock()
	held := d.hands[letter]
	if held == nil || held.seat != s || held.released {
		d.blame("%s was returned by a connection that does not have it, or had it released", letter.Delivery)
		return
	}
	d.returned[letter.Delivery]++
	again := *letter
	again.Body = bytes.Clone(letter.Body)
	d.over(letter)
	d.waiting = append([]*fanfare.Letter{&again}, d.waiting...)
}

// over ends a connection's hold on a letter. Its memory has another one's from here
// on, as it has in an outlet.
func (d *Desk) over(letter *fanfare.Letter) {
	delete(d.hands, letter)
	for i := range letter.Body {
		letter.Body[i] = '!'
	}
}

// Outcomes are those that were reported, by delivery.
func (d *Desk) Outcomes() map[fanfare.DeliveryRef]fanfare.Outcome {
	d.mu.Lock()
	defer d.mu.Unlock()
	all := make(map[fanfare.DeliveryRef]fanfare.Outcome, len(d.outcomes))
	for ref, outcome := range d.outcomes {
		all[ref] = outcome
	}
	return all
}

// Waiting is how many letters nobody has.
func (d *Desk) Waiting() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.waiting)
}

// Returned is how often a letter came back.
func (d *Desk) Returned(ref fanfare.DeliveryRef) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.returned[ref]
}

// Arrived tells the desk that a body is complete at the next hop. It must be that
// of a letter that was let go and whose outcome is still to come.
func (d *Desk) Arrived(body []byte) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for letter, held := range d.hands {
		if held.released && bytes.Equal(whole(letter), body) {
			return
		}
	}
	d.blame("a body arrived that no connection may send now: %.80q", body)
}

// whole is the message as it leaves.
func whole(letter *fanfare.Letter) []byte { return slices.Concat(letter.Body, letter.Enclosed) }

// Check fails the test with all that a driver did wrong, and where letters are
// still in a connection's hands.
func (d *Desk) Check(t testing.TB) {
	t.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	for letter := range d.hands {
		d.blame("%s was neither returned nor reported", letter.Delivery)
	}
	slices.Sort(d.wrong)
	for _, wrong := range slices.Compact(d.wrong) {
		t.Error(wrong)
	}
}
