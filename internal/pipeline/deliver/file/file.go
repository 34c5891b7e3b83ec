// Package file is the driver that writes messages into a folder, each as a file that mail
// programs open (.eml). It is for trials, archives and tests. Package channels creates the
// drivers, and package deliver calls Serve.
//
// State. Messages are written under temporary names, synced and renamed, so that a visible
// file is complete. The name is the id of the delivery: a second attempt replaces the file
// of the first. Waiting messages are written together: files and folder are synced once for
// all of them if the file system allows it, and one commit records their outcomes. A
// message is reported only when its file is durable.
//
// Failure. A folder that cannot be written to counts as a broken connection: messages wait. A
// killed process leaves temporary files; the next process of the same owner removes them,
// and no others.
package file

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"fanfare.dev/fanfare/internal/durablefile"
	"fanfare.dev/fanfare/internal/pipeline/deliver/driver"
)

// The maximum size of a batch, so that a new message does not wait long.
const (
	maxBatch      = 64
	maxBatchBytes = 4 << 20
)

// Driver writes messages into a folder.
type Driver struct {
	folder  string
	names   TempNames
	cleaned sync.Once
	syncer  func() *syncer // for the folder, once it exists
}

// New returns a driver for a folder, which is created if it is missing. Temporary files of
// an earlier run of the same owner are removed.
func New(folder string, names TempNames) *Driver {
	return &Driver{folder: folder, names: names, syncer: sync.OnceValue(func() *syncer { return newSyncer(folder) })}
}

// Serve writes messages until the queue has no more or ctx ends.
func (d *Driver) Serve(ctx context.Context, queue driver.Queue) error {
	if err := durablefile.MakeDir(d.folder, 0o700); err != nil {
		return fmt.Errorf("cannot write to the folder of the channel: %w", err)
	}
	d.cleaned.Do(func() { d.names.removeLeftovers(d.folder) })
	syncer := d.syncer()
	for {
		messages, err := take(ctx, queue)
		if len(messages) == 0 {
			return err
		}
		if err := errors.Join(d.deliver(queue, syncer, messages), err); err != nil {
			return err
		}
	}
}

// take waits for a message, and takes the waiting messages with it.
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

// deliver writes messages to files and reports them when they are durable. It returns messages
// that cannot be written to the queue, and the error of the folder to the caller.
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
