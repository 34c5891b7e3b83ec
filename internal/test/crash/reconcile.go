package crash

import (
	"fmt"

	"fanfare.dev/fanfare"
)

// Reconcile compares the reported counts of a broadcast, and the trace of each delivery, with the messages that arrived.
// It returns the differences.
func Reconcile(b *fanfare.Broadcast, deliveries []fanfare.Delivery, reached map[string]bool, refused func(address string) (bool, error)) ([]string, error) {
	var wrong []string
	note := func(format string, args ...any) { wrong = append(wrong, b.Event+": "+fmt.Sprintf(format, args...)) }
	cancelled := b.State == fanfare.SwitchCancelled
	if b.State != "completed" && !cancelled || b.Stages.Completed.IsZero() {
		note("is %s", b.State)
	}
	if b.Counts.Settled() != b.Messages || int64(len(deliveries)) != b.Messages {
		note("%d messages, %d settled, %d in the trace", b.Messages, b.Counts.Settled(), len(deliveries))
	}
	counts := map[string]int64{}
	traced := make(map[string]bool, len(deliveries))
	for i := range deliveries {
		d := &deliveries[i]
		counts[d.State]++
		if traced[d.Address] {
			note("two deliveries to %s", d.Address)
		}
		traced[d.Address] = true
		switch took := reached[d.Address]; {
		case d.State == fanfare.Accepted.String() && took, d.State == fanfare.Suppressed.String(),
			d.State == fanfare.Cancelled.String() && cancelled:
			// A kill between the body and the record may leave a message that
			// was taken and is suppressed or cancelled afterwards.
		case d.State == fanfare.Failed.String() && !took:
			no, err := refused(d.Address)
			if err != nil {
				return nil, err
			}
			if !no {
				note("the delivery to %s, whom nobody refuses, is failed: %+v", d.Address, d.Attempts)
			}
		default:
			note("the delivery to %s is %s; taken: %t", d.Address, d.State, took)
		}
	}
	for state, n := range b.Counts {
		if name := fanfare.State(state).String(); counts[name] != n {
			note("%d deliveries are said to be %s, the trace has %d", n, name, counts[name])
		}
	}
	for address := range reached {
		if !traced[address] {
			note("a message to %s has no delivery", address)
		}
	}
	return wrong, nil
}
