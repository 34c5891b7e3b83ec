// Package inbox is the driver that stores messages in the mailboxes of subscribers. Package channels creates the drivers, and package
// deliver calls Serve.
//
// State. Only the messages that a connection holds.
//
// Failure. The messages of a connection are stored in one transaction. A message whose outcome could not be recorded is sent again; the
// store knows its delivery and does not store it twice.
package inbox

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/clock"
	"fanfare.dev/fanfare/internal/mailbox"
	"fanfare.dev/fanfare/internal/pipeline/deliver/driver"
)

// The maximum size of a transaction, so that a new message does not wait long.
const (
	maxMessages = 256
	maxBytes    = 4 << 20
)

// Relay is the name of the only next hop of the driver.
const Relay = "mailboxes"

// Store stores messages in mailboxes. mailbox.Store implements it.
type Store interface {
	// Deposit stores messages and returns an error or nil for each. A message whose delivery is stored already is not stored again.
	Deposit(ctx context.Context, list []mailbox.Deposit) []error
	// DepositAll is Deposit for the messages of a batch.
	DepositAll(ctx context.Context, list []mailbox.Deposit) []error
}

// Config is the configuration of a Driver.
type Config struct {
	Service string
	Keep    time.Duration // after which the messages of a broadcast expire; 0: never
	Store   Store
	Clock   clock.Clock
}

// A Driver stores the messages of a channel. It is safe for concurrent use; each call of Serve has one transaction at a time.
type Driver struct{ config Config }

var _ driver.BatchDriver = (*Driver)(nil)

// New returns a driver.
func New(config Config) *Driver { return &Driver{config} }

// Serve stores messages until the queue has no more or ctx ends; see driver.Driver.
func (d *Driver) Serve(ctx context.Context, queue driver.Queue) error {
	for {
		messages, err := take(ctx, queue)
		if len(messages) == 0 {
			return err
		}
		if err := errors.Join(d.store(ctx, queue, messages), err); err != nil || ctx.Err() != nil {
			return err
		}
	}
}

// take waits for a message, and takes the waiting messages with it.
func take(ctx context.Context, queue driver.Queue) (messages []*driver.Message, err error) {
	for size := 0; len(messages) < maxMessages && size < maxBytes; {
		message, err := queue.Next(ctx, len(messages) == 0)
		if message == nil || err != nil {
			return messages, err
		}
		messages, size = append(messages, message), size+message.Size()
	}
	return messages, nil
}

// store stores messages and reports their outcomes.
func (d *Driver) store(ctx context.Context, queue driver.Queue, messages []*driver.Message) error {
	for len(messages) > 0 {
		left, released := queue.ReleaseAll(messages)
		messages = left
		if released {
			break
		}
	}
	if len(messages) == 0 {
		return nil
	}
	if err := queue.ReportAll(messages, d.deposit(ctx, messages, d.config.Store.Deposit)); err != nil {
		return fmt.Errorf("cannot record the outcomes: %w", err)
	}
	return nil
}

// DeliverAll stores the messages of a batch; see driver.BatchDriver.
func (d *Driver) DeliverAll(ctx context.Context, messages []*driver.Message) []driver.Outcome {
	return d.deposit(ctx, messages, d.config.Store.DepositAll)
}

// deposit stores messages and returns their outcomes.
func (d *Driver) deposit(ctx context.Context, messages []*driver.Message, store func(context.Context, []mailbox.Deposit) []error) []driver.Outcome {
	list := make([]mailbox.Deposit, len(messages))
	for i, m := range messages {
		content := m.Body
		if len(m.Attachments) > 0 {
			content = append(bytes.Clone(m.Body), m.Attachments...)
		}
		list[i] = mailbox.Deposit{Owner: mailbox.Owner{ID: m.Subscriber, Service: d.config.Service, Address: m.To},
			Delivery: m.Delivery, Content: content, Keep: d.config.Keep}
	}
	outcomes := make([]driver.Outcome, len(messages))
	errs := store(context.WithoutCancel(ctx), list) // a transaction that has begun is finished
	at := d.config.Clock.Now()
	for i := range outcomes {
		outcomes[i] = outcomeOf(errs[i])
		outcomes[i].At = at
	}
	return outcomes
}

// outcomeOf returns the outcome that a result of Deposit stands for.
func outcomeOf(err error) driver.Outcome {
	if err == nil {
		return driver.Outcome{Verdict: driver.Accepted, Delivered: true, Text: "stored in the mailbox", Relay: Relay}
	}
	o := driver.Outcome{Verdict: driver.Temporary, Relay: Relay, Text: string(driver.AppendText(nil, []byte(err.Error()), driver.MaxTextBytes))}
	if user, ok := errors.AsType[*fanfare.Error](err); ok {
		switch user.Code {
		case fanfare.Unavailable, fanfare.DiskFull, fanfare.RateLimited, fanfare.Internal:
		default:
			o.Verdict, o.Class = driver.Permanent, fanfare.ClassInvalid
		}
	}
	return o
}
