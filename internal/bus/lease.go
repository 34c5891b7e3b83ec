package bus

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"
)

// Lease is one message that this process holds. The bus renews it until Done or Later is called,
// or until this process stops.
type Lease struct {
	bus   *Bus
	order *order                 // of its queue; nil if the queue has none
	reply atomic.Pointer[string] // subject of acknowledgements
	until atomic.Int64           // unix nanoseconds
	over  atomic.Bool            // Done or Later was called

	Data       []byte    // the holder may release it
	Seq        uint64    // sequence in its stream
	Kept       time.Time // when the stream stored it
	Deliveries int       // number of deliveries, including this one
}

// Until returns the time until which no other process gets the message.
func (l *Lease) Until() time.Time { return time.Unix(0, l.until.Load()) }

// Done removes the message from the queue. It does not wait: if the acknowledgement is lost, the
// message is delivered again.
func (l *Lease) Done() error {
	l.forget()
	l.order.finish(l, false)
	return l.say("+ACK")
}

// Later returns the message to the queue, which delivers it again after a delay.
func (l *Lease) Later(delay time.Duration) error {
	l.forget()
	l.order.finish(l, true)
	if delay <= 0 {
		return l.say("-NAK")
	}
	return l.say(fmt.Sprintf(`-NAK {"delay": %d}`, delay.Nanoseconds()))
}

// say sends an acknowledgement of JetStream for the message. It does not need the message itself:
// many leases may be held for long, and only some of them with their data.
func (l *Lease) say(word string) error { return l.bus.conn.Publish(*l.reply.Load(), []byte(word)) }

func (l *Lease) forget() {
	l.over.Store(true)
	l.bus.mu.Lock()
	delete(l.bus.leases, l)
	l.bus.mu.Unlock()
}

// renewals is the number of renewals within the length of a lease, so that a lease always has five
// sixths of its time left while the bus answers.
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

// renew counts leases as renewed when the server has read the renewals; one in a buffer renews
// nothing.
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
