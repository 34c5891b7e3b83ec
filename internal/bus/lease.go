package bus

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"
)

// Lease is one message in the hands of this process. The bus renews it until
// Done or Later is called, or this process falls silent.
type Lease struct {
	bus   *Bus
	reply string       // where the server hears of it
	until atomic.Int64 // unix nanoseconds
	over  atomic.Bool  // Done or Later was said

	Data       []byte    // the holder may let go of it
	Seq        uint64    // sequence in its stream
	Kept       time.Time // when the stream took it
	Deliveries int       // how often it was handed out, this time included
}

// Until is the time up to which nobody else can be given the message.
func (l *Lease) Until() time.Time { return time.Unix(0, l.until.Load()) }

// Done takes the message off the queue for good. It does not wait: where the
// word is lost, the message comes again.
func (l *Lease) Done() error {
	l.forget()
	return l.say("+ACK")
}

// Later gives the message back, to come again after a delay.
func (l *Lease) Later(delay time.Duration) error {
	l.forget()
	if delay <= 0 {
		return l.say("-NAK")
	}
	return l.say(fmt.Sprintf(`-NAK {"delay": %d}`, delay.Nanoseconds()))
}

// say tells the server something of the message, in the words of JetStream. The
// message itself is not needed for that: many leases may be held for long, and only
// some of them with their data.
func (l *Lease) say(word string) error { return l.bus.conn.Publish(l.reply, []byte(word)) }

func (l *Lease) forget() {
	l.over.Store(true)
	l.bus.mu.Lock()
	delete(l.bus.leases, l)
	l.bus.mu.Unlock()
}

// renewals is how often a lease is renewed within its length: what is left of
// one never falls below five sixths while the bus answers.
const renewals = 6

// keepLeases renews all leases.
func (b *Bus) keepLeases(ctx context.Context) {
	ticker := time.NewTicker(b.options.Lease / renewals)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if !b.conn.IsConnected() {
			continue
		}
		b.mu.Lock()
		held := make([]*Lease, 0, len(b.leases))
		for l := range b.leases {
			held = append(held, l)
		}
		b.mu.Unlock()
		b.renew(held)
	}
}

// renew counts leases as renewed when the server has read that they are: a word
// that is still in a buffer renews nothing.
func (b *Bus) renew(held []*Lease) {
	if len(held) == 0 {
		return
	}
	start := time.Now()
	renewed := held[:0]
	for _, l := range held {
		if !l.over.Load() && l.say("+WPI") == nil {
			renewed = append(renewed, l)
		}
	}
	if b.conn.FlushTimeout(b.options.Lease/renewals) != nil {
		return
	}
	for _, l := range renewed {
		l.until.Store(start.Add(b.options.Lease).UnixNano())
	}
}
