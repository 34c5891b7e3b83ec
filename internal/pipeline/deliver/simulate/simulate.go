// Package simulate is the driver of channels that deliver nothing: it reports each message as delivered, and messages to
// a few addresses as failed. Clients of GOV.UK Notify test their programs with these addresses. Package channels
// creates the driver, and package deliver calls Serve.
//
// It keeps no state, opens no connection and cannot fail.
package simulate

import (
	"context"
	"fmt"
	"strings"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/pipeline/deliver/driver"
)

// Relay is the name of the simulated next hop.
const Relay = "simulation"

// The addresses that fail.
var outcomes = map[string]driver.Outcome{
	"temp-fail@simulator.notify": {Verdict: driver.Permanent, Code: 552, Text: "5.2.2 simulated: the mailbox is full", Class: fanfare.ClassFull},
	"perm-fail@simulator.notify": {Verdict: driver.Permanent, Code: 550, Text: "5.1.1 simulated: there is no such mailbox", Class: fanfare.ClassInvalid},
	"+447700900003":              {Verdict: driver.Permanent, Code: 552, Text: "5.2.2 simulated: the phone is off", Class: fanfare.ClassFull},
	"+447700900002":              {Verdict: driver.Permanent, Code: 550, Text: "5.1.1 simulated: there is no such number", Class: fanfare.ClassInvalid},
}

// A Driver simulates deliveries. It is safe for concurrent use.
type Driver struct{ now func() time.Time }

var _ driver.Driver = (*Driver)(nil)

// New returns a Driver.
func New(now func() time.Time) *Driver { return &Driver{now} }

// Serve reports the outcomes of messages until the queue has no more or ctx ends; see driver.Driver.
func (d *Driver) Serve(ctx context.Context, queue driver.Queue) error {
	for {
		message, err := queue.Next(ctx, true)
		if err != nil || message == nil {
			return err
		}
		if !queue.Release(message) {
			continue
		}
		outcome, fails := outcomes[strings.ToLower(message.To)]
		if !fails {
			outcome = driver.Outcome{Verdict: driver.Accepted, Delivered: true, Code: 250, Text: "simulated: nothing was sent"}
		}
		outcome.Relay, outcome.At = Relay, d.now()
		if err := queue.Report(message, outcome); err != nil {
			return fmt.Errorf("cannot record the outcome: %w", err)
		}
	}
}
