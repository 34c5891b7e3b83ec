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
// Failure. A folder that cannot be written is a broken connection: letters wait. A
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

	"fanfare.dev/fanfare"
)

// What is written together is bounded, so that a message which comes meanwhile does
// not wait long for its turn.
const (
	maxTogether      = 64
	maxTogetherBytes = 4 << 20
)

// Driver writes letters into a folder.
type Driver struct {
	folder string
	mark   Mark
	swept  sync.Once
	disk   func() *syncer // of the folder, once that is there
}

// New returns a driver for a folder, which is made if it is missing. What an earlier
// run of the same owner left there without a name is removed.
func New(folder string, mark Mark) *Driver {
	return &Driver{folder: folder, mark: mark, disk: sync.OnceValue(func() *syncer { return newSyncer(folder) })}
}

// Serve writes letters until the desk has no more or ctx ends.
func (d *Driver) Serve(ctx context.Context, desk fanfare.Desk) error {
	if err := os.MkdirAll(d.folder, 0o700); err != nil {
		return fmt.Errorf("folder of the channel: %w", err)
	}
	d.swept.Do(func() { d.mark.sweep(d.folder) })
	disk := d.disk()
	for {
		letters, err := take(ctx, desk)
		if len(letters) == 0 {
			return err
		}
		if err := errors.Join(d.deliver(desk, disk, letters), err); err != nil {
			return err
		}
	}
}

// take waits for a letter, and takes with it what waits behind it.
func take(ctx context.Context, desk fanfare.Desk) (letters []*fanfare.Letter, err error) {
	most := 1
	if _, able := desk.(fanfare.Together); able {
		most = maxTogether
	}
	for size := 0; len(letters) < most && size < maxTogetherBytes; {
		letter, err := desk.Next(ctx, len(letters) == 0)
		if letter == nil || err != nil {
			return letters, err
		}
		letters, size = append(letters, letter), size+letter.Size()
	}
	return letters, nil
}

// deliver makes files of letters, and says so when they are durable. What cannot be
// written goes back, and the failure of the folder is returned.
func (d *Driver) deliver(desk fanfare.Desk, disk *syncer, letters []*fanfare.Letter) error {
	p := pile{folder: d.folder, mark: d.mark}
	defer p.clear()
	failed := p.write(desk, letters)
	failed = errors.Join(failed, p.sync(desk, disk))
	p.release(desk)
	if len(p.sheets) == 0 {
		return failed
	}
	outcomes, err := p.place()
	now := time.Now().UTC()
	for i := range outcomes {
		outcomes[i].At = now
	}
	return errors.Join(failed, err, p.report(desk, outcomes))
}
