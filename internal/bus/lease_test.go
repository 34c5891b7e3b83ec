package bus

import (
	"testing"
	"time"
)

func TestUnacknowledgedMessagesAreRedeliveredAfterARestart(t *testing.T) {
	dir := t.TempDir()
	b := open(t, Options{Dir: dir, Lease: time.Hour})
	publish(t, b, "zero", "one", "two", "three")
	q := batchQueue(t, b)
	for i := range 3 {
		l := take(t, q, []string{"zero", "one", "two"}[i])
		if i == 1 {
			if err := l.Done(); err != nil {
				t.Fatal(err)
			}
		}
	}
	settled(t, b, Backlog{Batches: 3})
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}

	b = open(t, Options{Dir: dir, Lease: time.Hour})
	q = batchQueue(t, b)
	for _, want := range []string{"zero", "two", "three"} {
		if err := take(t, q, want).Done(); err != nil {
			t.Fatal(err)
		}
	}
	settled(t, b, Backlog{})
	nothingWithin(t, q, 50*time.Millisecond)
}

func TestAReturnedMessageIsRedeliveredAfterItsDelay(t *testing.T) {
	b := open(t, Options{})
	q := batchQueue(t, b)
	publish(t, b, "at once", "later")
	first, second := take(t, q, "at once"), take(t, q, "later")
	if first.Deliveries != 1 || first.Seq != 1 || second.Seq != 2 {
		t.Errorf("leases %+v and %+v", first, second)
	}
	given := time.Now()
	if err := second.Later(300 * time.Millisecond); err != nil {
		t.Fatal(err)
	}
	if err := first.Later(0); err != nil {
		t.Fatal(err)
	}
	if again := take(t, q, "at once"); again.Deliveries != 2 || again.Seq != first.Seq {
		t.Errorf("the lease is %+v, want the second delivery", again)
	}
	take(t, q, "later")
	if waited := time.Since(given); waited < 300*time.Millisecond {
		t.Errorf("it came again after %v", waited)
	}
}

// TestALeaseIsRenewedWhileItsHolderLives holds a message for longer than a lease, in
// hand and lying ready, and then gives it back.
func TestALeaseIsRenewedWhileItsHolderLives(t *testing.T) {
	t.Parallel()
	const lease = 10 * time.Second // a busy machine may stop the holder for most of it
	b := open(t, Options{Lease: lease})
	q := batchQueue(t, b)
	publish(t, b, "in hand", "ready")
	l := take(t, q, "in hand")
	first, limit := l.Until(), time.After(4*time.Minute)
	look := time.NewTicker(10 * time.Millisecond)
	defer look.Stop()
	for !l.Until().After(first.Add(lease)) {
		select {
		case <-limit:
			t.Fatalf("a lease until %v is still one until %v", first, l.Until())
		case <-look.C:
		}
	}
	ready := take(t, q, "ready")
	if ready.Deliveries != 1 || !ready.Until().After(first) {
		t.Errorf("what lay ready was delivered %d times and is leased until %v", ready.Deliveries, ready.Until())
	}
	nothingWithin(t, q, lease/10)
	if err := ready.Done(); err != nil {
		t.Fatal(err)
	}
	if err := l.Later(0); err != nil {
		t.Fatal(err)
	}
	if again := take(t, q, "in hand"); again.Deliveries != 2 {
		t.Errorf("it was delivered %d times, want 2", again.Deliveries)
	}
}

func TestALeaseOfAHolderThatFellSilentRunsOut(t *testing.T) {
	t.Parallel()
	b := open(t, Options{Lease: 5 * time.Second})
	q := batchQueue(t, b)
	publish(t, b, "one")
	take(t, q, "one").forget() // nobody renews it
	if again := take(t, q, "one"); again.Deliveries != 2 {
		t.Errorf("it was delivered %d times, want 2", again.Deliveries)
	}
}
