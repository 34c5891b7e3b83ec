package bus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/durablefile"
	"fanfare.dev/fanfare/internal/failpoint"
)

// syncPointFile is the file of a bus whose appends are not synced (durability relaxed). It is synced itself. It exists while
// the bus runs, and after an end that was not clean.
const syncPointFile = "syncpoint.json"

// reserveGroups is the number of sequences of EVENTS that one write of the file reserves.
const reserveGroups = 4096

// skippedSubject is the subject of groups without events. They take the sequences that may have been given to groups that a
// loss of power destroyed. No queue delivers them.
const skippedSubject = "fanfare.events.skipped"

// A syncPoint says what a loss of power can have destroyed.
type syncPoint struct {
	Boot     string            `json:"boot"`     // run of the operating system whose memory may have unsynced data
	Reserved uint64            `json:"reserved"` // no group has been given a higher sequence in EVENTS
	Matched  map[string]uint64 `json:"matched"`  // by lane: groups up to this sequence are matched, and the store has synced the result
}

// syncPoints keeps the file of a bus. A nil *syncPoints does nothing: appends are synced, or other servers have the bus.
type syncPoints struct {
	dir string

	mu     sync.Mutex
	failed bool // the last SyncPoint
	point  syncPoint
	synced map[string]time.Time // change of each file and directory that was synced last
}

// bootFile changes with each start of the operating system.
const bootFile = "/proc/sys/kernel/random/boot_id"

// boot identifies the run of the operating system; "" if that is unknown.
func boot() string {
	if failpoint.Fault("power-lost") {
		return ""
	}
	id, err := os.ReadFile(bootFile)
	if err != nil {
		return ""
	}
	return string(id)
}

// PowerLost reports whether an embedded bus whose appends were not synced ended with a loss of power, as far as is known: it was
// not closed, and the operating system has started again since.
func PowerLost(dir string) (bool, error) {
	point, err := readSyncPoint(dir)
	if point == nil || err != nil {
		return false, err
	}
	now := boot()
	return now == "" || now != point.Boot, nil
}

// readSyncPoint returns nil if there is no file.
func readSyncPoint(dir string) (*syncPoint, error) {
	text, err := os.ReadFile(filepath.Join(dir, syncPointFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	point := &syncPoint{}
	if err := json.Unmarshal(text, point); err != nil {
		return nil, &fanfare.Error{Code: fanfare.Invalid, Message: filepath.Join(dir, syncPointFile) + " is damaged: " + err.Error(),
			Hint: "restore the data directory from a backup; or remove the folder of the bus, and lose the events that were not matched"}
	}
	return point, nil
}

func (s *syncPoints) write() error {
	text, err := json.Marshal(&s.point)
	if err != nil {
		return err
	}
	return durablefile.Write(filepath.Join(s.dir, syncPointFile), text)
}

// openSyncPoints begins the file of the bus. After a loss of power, it first makes the streams agree with what the file and the
// store know.
func (b *Bus) openSyncPoints(ctx context.Context) error {
	if !b.alone {
		return nil
	}
	s := &syncPoints{dir: b.options.Dir, synced: map[string]time.Time{}, point: syncPoint{Matched: map[string]uint64{}}}
	earlier, err := readSyncPoint(b.options.Dir)
	if err != nil || b.options.Sync && earlier == nil {
		return err
	}
	if earlier != nil {
		s.point = *earlier
	}
	if b.options.PowerLost {
		if err := b.afterPowerLoss(ctx, &s.point); err != nil {
			return fmt.Errorf("repair the bus after a loss of power: %w", err)
		}
	}
	if err := s.syncFiles(); err != nil { // new streams, and what an earlier run has not synced
		return err
	}
	if b.options.Sync { // the mode was changed
		return durablefile.Remove(filepath.Join(s.dir, syncPointFile))
	}
	next, err := b.NextEvent(ctx)
	if err != nil {
		return err
	}
	s.point.Boot, s.point.Reserved = boot(), max(s.point.Reserved, next-1+reserveGroups)
	b.syncPoints = s
	return s.write()
}

// afterPowerLoss gives no sequence of EVENTS again that a group may have had, has the groups delivered again whose result the
// store may have lost, and removes all batches, which the caller creates again from the store.
func (b *Bus) afterPowerLoss(ctx context.Context, point *syncPoint) error {
	next, err := b.NextEvent(ctx)
	if err != nil {
		return err
	}
	last := max(point.Reserved, b.options.LastSeq)
	ahead := make(chan jetstream.PubAckFuture, batchesAhead)
	for ; next <= last; next++ {
		if len(ahead) == cap(ahead) {
			if err := published(ctx, <-ahead); err != nil {
				return err
			}
		}
		future, err := b.js.PublishAsync(skippedSubject, nil, jetstream.WithStallWait(stallWait))
		if err != nil {
			return err
		}
		ahead <- future
	}
	for range len(ahead) {
		if err := published(ctx, <-ahead); err != nil {
			return err
		}
	}
	for _, stream := range []jetstream.Stream{b.events, b.batches} {
		names := stream.ConsumerNames(ctx)
		var all []string
		for name := range names.Name() {
			all = append(all, name)
		}
		if err := names.Err(); err != nil {
			return err
		}
		for _, name := range all {
			if err := stream.DeleteConsumer(ctx, name); err != nil && !errors.Is(err, jetstream.ErrConsumerNotFound) {
				return err
			}
		}
	}
	for _, lane := range fanfare.Lanes {
		config := b.consumerConfig(eventsSubject(lane))
		config.DeliverPolicy, config.OptStartSeq = jetstream.DeliverByStartSequencePolicy, point.Matched[lane.String()]+1
		if _, err := b.events.CreateConsumer(ctx, config); err != nil {
			return err
		}
	}
	return b.batches.Purge(ctx)
}

// reserve returns when no loss of power can make the bus give a sequence again. It reserves sequences ahead, because queues deliver a
// group before its append returns.
func (s *syncPoints) reserve(seq uint64) error {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if seq+reserveGroups/2 <= s.point.Reserved {
		return nil
	}
	s.point.Reserved = seq + reserveGroups
	return s.write()
}

// SyncPoint writes all data of the bus to the disk, and records which groups a loss of power from now on cannot make unmatched. syncStore
// does the same for the store. Without such a record, it does only the latter.
func (b *Bus) SyncPoint(ctx context.Context, syncStore func(context.Context) error) error {
	s := b.syncPoints
	if s == nil {
		return syncStore(ctx)
	}
	err := b.syncPoint(ctx, s, syncStore)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failed = err != nil
	return err
}

func (b *Bus) syncPoint(ctx context.Context, s *syncPoints, syncStore func(context.Context) error) error {
	matched := map[string]uint64{}
	for _, lane := range fanfare.Lanes {
		consumer, err := b.events.Consumer(ctx, consumerName(eventsSubject(lane)))
		if errors.Is(err, jetstream.ErrConsumerNotFound) {
			continue
		}
		if err != nil {
			return err
		}
		matched[lane.String()] = consumer.CachedInfo().AckFloor.Stream
	}
	if err := syncStore(ctx); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.syncFiles(); err != nil {
		return err
	}
	changed := false
	for lane, floor := range matched {
		if floor > s.point.Matched[lane] {
			s.point.Matched[lane], changed = floor, true
		}
	}
	if !changed {
		return nil
	}
	return s.write()
}

// end is called when the server of the bus has stopped. If the disk has everything, it removes the file.
func (s *syncPoints) end() error {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.syncFiles(); err != nil || s.failed {
		return err
	}
	return durablefile.Remove(filepath.Join(s.dir, syncPointFile))
}

// syncFiles syncs the files and directories of the bus that have changed since the last call.
func (s *syncPoints) syncFiles() error {
	var names []string // directories, after the files in them
	err := filepath.WalkDir(s.dir, func(path string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // removed meanwhile
		}
		if err != nil {
			return err
		}
		if entry.IsDir() {
			names = append(names, path)
			return nil
		}
		return s.syncOne(path)
	})
	for _, path := range names {
		if err == nil {
			err = s.syncOne(path)
		}
	}
	if err == nil {
		err = durablefile.SyncDir(filepath.Dir(s.dir))
	}
	return err
}

func (s *syncPoints) syncOne(path string) error {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	changed, now := info.ModTime(), time.Now()
	if changed.Equal(s.synced[path]) {
		return nil
	}
	if err := durablefile.Sync(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if now.Sub(changed) > clockTick {
		s.synced[path] = changed
	}
	return nil
}
