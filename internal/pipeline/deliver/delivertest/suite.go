package delivertest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"fanfare.dev/fanfare"
)

// A Behaviour is how a next hop deals with letters.
type Behaviour string

// The behaviours.
const (
	Takes         Behaviour = "takes all"
	RefusesForNow Behaviour = "refuses for now"
	RefusesAll    Behaviour = "refuses for good"
	Drops         Behaviour = "reads a body and is gone"
	Silent        Behaviour = "reads a body and says nothing"
	Drips         Behaviour = "answers a byte at a time without end"
	Early         Behaviour = "answers before it reads"
	Absent        Behaviour = "cannot be reached"
)

// A World is a driver and a real next hop of its kind. Its time-outs are short.
type World struct {
	Driver fanfare.Driver
	Relay  string // of outcomes, or its beginning
	// Letter makes the nth letter with the address and the form of its kind. Its
	// body has text in it, as it is.
	Letter func(n int, text string) *fanfare.Letter
	// Behave says how letters are dealt with from now on.
	Behave func(Behaviour)
	// Encloses says that letters of this kind may have files enclosed.
	Encloses bool
	// Replaces says that a letter which comes twice replaces itself, so that different
	// ones may leave together.
	Replaces bool
	// Knows lists the behaviours that a next hop of this kind can have, beside Takes.
	Knows []Behaviour
	// Watch has every body that is complete at the next hop told, before it answers.
	Watch func(func(body []byte))
	// Got lists the bodies that the next hop took, as they were.
	Got func() [][]byte
}

// letters makes letters whose bodies differ, the last of them large.
func (w *World) letters(n int) []*fanfare.Letter {
	all := make([]*fanfare.Letter, n)
	for i := range all {
		text := fmt.Sprintf("letter %d ", i)
		if i == n-1 {
			text = strings.Repeat(text+"\r\n", 20_000)
		}
		all[i] = w.Letter(i, text)
		all[i].Delivery = fanfare.DeliveryRef{Day: 20777, Manifest: 64, Position: uint32(i)}
	}
	return all
}

// desk has letters for the world.
func (w *World) desk(letters ...*fanfare.Letter) *Desk {
	desk := NewDesk(letters...)
	desk.Any = w.Replaces
	return desk
}

// Run runs the suite. Each test has a world of its own.
func Run(t *testing.T, open func(t *testing.T) *World) {
	for _, one := range []struct {
		name string
		test func(*testing.T, *World)
	}{
		{"each letter arrives once and whole over any number of connections", arrives},
		{"nothing of a letter leaves that the desk does not let go", withheld},
		{"letters that are one message arrive by as many bodies at most, and each has its outcome", shared},
		{"no body is begun before the outcome of the one before is kept", inTurn},
		{"nothing leaves once outcomes cannot be kept", unkept},
		{"nothing is taken under a context that has ended", ended},
		{"a connection without letters ends with its context", rests},
		{"a panic of the desk reaches who serves", panics},
	} {
		t.Run(one.name, func(t *testing.T) { one.test(t, open(t)) })
	}
	if open(t).Encloses {
		t.Run("what is enclosed follows each letter", func(t *testing.T) { encloses(t, open(t)) })
	}
	for _, b := range open(t).Knows {
		t.Run("a next hop that "+string(b), func(t *testing.T) { behaves(t, open(t), b) })
	}
}

// serve runs connections until the desk has nothing more, as an outlet does: an
// error is a broken connection, and another follows.
func serve(t *testing.T, w *World, desk *Desk, connections, failures int) {
	t.Helper()
	var running sync.WaitGroup
	for range connections {
		running.Go(func() {
			for failed := 0; ; failed++ {
				err := w.Driver.Serve(t.Context(), desk.Seat())
				if err == nil {
					return
				}
				if failed == failures {
					if failures == 0 {
						t.Errorf("a connection ended: %v", err)
					}
					return
				}
			}
		})
	}
	running.Wait()
	desk.Check(t)
}

func arrives(t *testing.T, w *World) {
	letters := w.letters(60)
	want := make([]string, len(letters))
	for i, l := range letters {
		want[i] = string(l.Body)
	}
	desk := w.desk(letters...)
	w.Watch(desk.Arrived)
	serve(t, w, desk, 4, 0)
	var got []string
	for _, body := range w.Got() {
		got = append(got, string(body))
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("%d bodies arrived, want the %d that were sent, each once and as it was", len(got), len(want))
	}
	for _, l := range letters {
		if o := desk.Outcomes()[l.Delivery]; o.Verdict != fanfare.Taken || !strings.HasPrefix(o.Relay, w.Relay) {
			t.Errorf("%s: %+v, want it taken by %s", l.Delivery, o, w.Relay)
		}
	}
}

// encloses sends letters that have the same files, and some that have none, and
// some more that are one message with files.
func encloses(t *testing.T, w *World) {
	files := []byte("--=_mixed\r\n\r\n" + strings.Repeat(strings.Repeat("QUJD", 19)+"\r\n", 2_000) + "--=_mixed--\r\n")
	letters := w.letters(30)
	var want []string
	for i, l := range letters {
		if i%3 != 0 {
			l.Enclosed = files
		}
		if i >= 20 {
			l.Share, l.Enclosed, l.Body = 1, files, []byte(string(letters[20].Body))
		}
		if i <= 20 {
			want = append(want, string(whole(l)))
		}
	}
	desk := w.desk(letters...)
	w.Watch(desk.Arrived)
	serve(t, w, desk, 4, 0)
	var got []string
	for _, body := range w.Got() {
		got = append(got, string(body))
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(slices.Compact(got), want) { // those that are one message came once or several times
		t.Errorf("%d different bodies arrived, want the %d that were sent, with what is enclosed", len(got), len(want))
	}
	if n := len(desk.Outcomes()); n != len(letters) {
		t.Errorf("%d outcomes, want %d", n, len(letters))
	}
}

func withheld(t *testing.T, w *World) {
	desk := w.desk(w.letters(20)...)
	desk.Refuse = func(l *fanfare.Letter) bool { return l.Delivery.Position%2 == 0 }
	w.Watch(desk.Arrived)
	serve(t, w, desk, 2, 0)
	if n := len(desk.Outcomes()); n != 10 {
		t.Errorf("%d outcomes, want one for each of the 10 letters that were let go", n)
	}
	for _, body := range w.Got() {
		for i := range 10 {
			if bytes.Contains(body, fmt.Appendf(nil, "letter %d ", 2*i)) {
				t.Errorf("letter %d left", 2*i)
			}
		}
	}
	if n := len(w.Got()); n != 10 {
		t.Errorf("%d bodies arrived, want 10", n)
	}
}

// shared sends letters that are two messages, of which some may not leave.
func shared(t *testing.T, w *World) {
	letters := w.letters(40)
	first, second := string(letters[0].Body), string(letters[1].Body)
	for i, l := range letters {
		l.Share, l.Body = 1, []byte(first)
		if i >= 20 {
			l.Share, l.Body = 2, []byte(second)
		}
	}
	desk := w.desk(letters...)
	desk.Refuse = func(l *fanfare.Letter) bool { return l.Delivery.Position%7 == 3 }
	w.Watch(desk.Arrived)
	serve(t, w, desk, 2, 0)
	outcomes := desk.Outcomes()
	for _, l := range letters {
		o, known := outcomes[l.Delivery]
		if refused := l.Delivery.Position%7 == 3; known == refused || known && o.Verdict != fanfare.Taken {
			t.Errorf("%s: %+v (%v), want it taken where it may leave", l.Delivery, o, known)
		}
	}
	if got := w.Got(); len(got) < 2 || len(got) > len(outcomes) {
		t.Errorf("%d bodies arrived for %d letters of two messages", len(got), len(outcomes))
	}
	for _, body := range w.Got() {
		if string(body) != first && string(body) != second {
			t.Errorf("a body arrived that is none of the two: %.80q", body)
		}
	}
}

// inTurn has the desk look at the bodies that arrive while an outcome is being kept.
func inTurn(t *testing.T, w *World) {
	desk := w.desk(w.letters(30)...)
	arrived := 0
	var mu sync.Mutex
	w.Watch(func(body []byte) {
		desk.Arrived(body)
		mu.Lock()
		defer mu.Unlock()
		arrived++
	})
	reported := 0
	desk.Reports = func(*fanfare.Letter) error {
		mu.Lock()
		defer mu.Unlock()
		if reported++; arrived > reported {
			t.Errorf("%d bodies had arrived when outcome %d was being kept", arrived, reported)
		}
		return nil
	}
	serve(t, w, desk, 1, 0)
	if reported != 30 {
		t.Errorf("%d outcomes, want 30", reported)
	}
}

func unkept(t *testing.T, w *World) {
	desk := w.desk(w.letters(10)...)
	full := errors.New("the disk is full")
	desk.Reports = func(*fanfare.Letter) error { return full }
	if err := w.Driver.Serve(t.Context(), desk.Seat()); !errors.Is(err, full) {
		t.Errorf("Serve returned %v, want what the desk said", err)
	}
	if n := len(w.Got()); n > 1 && !w.Replaces { // what left together is replaced when it comes again
		t.Errorf("%d bodies left after the desk could keep nothing", n-1)
	}
}

func ended(t *testing.T, w *World) {
	ctx, end := context.WithCancel(t.Context())
	end()
	desk := w.desk(w.letters(3)...)
	if err := w.Driver.Serve(ctx, desk.Seat()); err != nil {
		t.Errorf("the end of the context is no failure: %v", err)
	}
	if n := desk.Waiting(); n != 3 || len(w.Got()) > 0 {
		t.Errorf("%d letters wait and %d arrived, want 3 and 0", n, len(w.Got()))
	}
	desk.Check(t)
}

func rests(t *testing.T, w *World) {
	ctx, end := context.WithCancel(t.Context())
	desk := w.desk(w.letters(3)...)
	desk.Blocks = true
	over := make(chan error)
	go func() { over <- w.Driver.Serve(ctx, desk.Seat()) }()
	<-desk.idle
	end()
	if err := <-over; err != nil {
		t.Errorf("the end of the context is no failure: %v", err)
	}
	if n := len(w.Got()); n != 3 {
		t.Errorf("%d letters arrived, want 3", n)
	}
	desk.Check(t)
}

func panics(t *testing.T, w *World) {
	desk := w.desk(w.letters(3)...)
	desk.Panics = func(*fanfare.Letter) { panic("a bug") }
	defer func() {
		if p := recover(); p != "a bug" {
			t.Errorf("recovered %v, want what the desk panicked with", p)
		}
		if n := len(w.Got()); n > 0 {
			t.Errorf("%d bodies left", n)
		}
	}()
	_ = w.Driver.Serve(t.Context(), desk.Seat())
}

// behaves sends to a next hop that does not take letters as it should. Whatever it
// does, each letter has one outcome that is true, and when it takes letters again,
// they arrive.
func behaves(t *testing.T, w *World, b Behaviour) {
	letters := w.letters(4)
	desk := w.desk(letters[:3]...)
	w.Behave(b)
	serve(t, w, desk, 2, 3)
	outcomes := desk.Outcomes()
	for _, l := range letters[:3] {
		o, known := outcomes[l.Delivery]
		switch b {
		case RefusesForNow:
			if o.Verdict != fanfare.Temporary {
				t.Errorf("%s: %+v, want it temporary", l.Delivery, o)
			}
		case RefusesAll:
			if o.Verdict != fanfare.Permanent {
				t.Errorf("%s: %+v, want it permanent", l.Delivery, o)
			}
		case Drops, Silent:
			if o.Verdict != fanfare.Lost {
				t.Errorf("%s: %+v, want it lost", l.Delivery, o)
			}
		case Drips:
			if !known {
				t.Errorf("%s has no outcome", l.Delivery)
			}
		case Early:
			if !known {
				t.Errorf("%s has no outcome", l.Delivery)
			}
		case Absent:
			if known && o.Verdict != fanfare.Temporary || !known && desk.Returned(l.Delivery)+desk.Waiting() == 0 {
				t.Errorf("%s: %+v, want it temporary, or back at the desk", l.Delivery, o)
			}
		}
	}
	if n := len(w.Got()); n > 0 {
		t.Errorf("%d letters were taken by a next hop that %s", n, b)
	}
	w.Behave(Takes)
	body := string(letters[3].Body)
	desk = w.desk(letters[3])
	serve(t, w, desk, 1, 1)
	if got := w.Got(); len(got) == 0 || string(got[len(got)-1]) != body || desk.Outcomes()[letters[3].Delivery].Verdict != fanfare.Taken {
		t.Errorf("after a next hop that %s, a letter did not arrive: %+v", b, desk.Outcomes())
	}
}
