// Package file is the way out into a folder: each message becomes one file, in
// the form that a mail program opens (.eml). It is for trying things out, for
// archives and for tests.
//
// State. Messages are written under temporary names, synced and renamed, so that
// whoever sees a file sees all of it. The name is the delivery's id: a second
// attempt replaces the file of the first. Messages that wait are written together:
// files and folder are synced once for all of them, as far as the file system can
// do that, and their outcomes are kept by one commit. None of them is reported
// before its file is durable.
//
// Failure. A folder that cannot be written is a broken connection: messages wait. A
// process that is killed leaves temporary files; the next one that writes for the
// same owner removes them, and touches those of nobody else.
package file

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"fanfare.dev/fanfare/internal/pipeline/deliver/driver"
)

// What is written together is bounded, so that a message which comes meanwhile does
// not wait long for its turn.
const (
	maxBatch      = 64
	maxBatchBytes = 4 << 20
)

// Driver writes messages into a folder.
type Driver struct {
	folder  string
	names   TempNames
	cleaned sync.Once
	syncer  func() *syncer // of the folder, once that is there
}

// New returns a driver for a folder, which is made if it is missing. What an earlier
// run of the same owner left there without a name is removed.
func New(folder string, mark TempNames) *Driver {
	return &Driver{folder: folder, names: mark, syncer: sync.OnceValue(func() *syncer { return newSyncer(folder) })}
}

// Serve writes messages until the queue has no more or ctx ends.
func (d *Driver) Serve(ctx context.Context, queue driver.Queue) error {
	if err := os.MkdirAll(d.folder, 0o700); err != nil {
		return fmt.Errorf("folder of the channel: %w", err)
	}
	d.cleaned.Do(func() { d.names.removeLeftovers(d.folder) })
	disk := d.syncer()
	for {
		messages, err := take(ctx, queue)
		if len(messages) == 0 {
			return err
		}
		if err := errors.Join(d.deliver(queue, disk, messages), err); err != nil {
			return err
		}
	}
}

// take waits for a message, and takes with it what waits behind it.
func take(ctx context.Context, queue driver.Queue) (messages []*driver.Message, err error) {
	for size := 0; len(messages) < maxBatch && size < maxBatchBytes; {
		message, err := queue.Next(ctx, len(messages) == 0)
		if message == nil || err != nil {
			return messages, err
		}
		messages, size = append(messages, message), size+message.Size()
	}
	return messages, nil
}

// deliver makes files of messages, and says so when they are durable. What cannot be
// written goes back, and the failure of the folder is returned.
func (d *Driver) deliver(queue driver.Queue, disk *syncer, messages []*driver.Message) error {
	p := batch{folder: d.folder, names: d.names}
	defer p.discardAll()
	failed := p.write(queue, messages)
	failed = errors.Join(failed, p.sync(queue, disk))
	p.release(queue)
	if len(p.files) == 0 {
		return failed
	}
	outcomes, err := p.rename()
	now := time.Now().UTC()
	for i := range outcomes {
		outcomes[i].At = now
	}
	return errors.Join(failed, err, p.report(queue, outcomes))
}
