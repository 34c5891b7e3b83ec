package suppression

import (
	"bytes"
	"cmp"
	"slices"
	"sync"
	"sync/atomic"
)

// List holds the suppressed addresses in memory. Source and address stay in the store.
type List struct {
	Key     []byte // of the hashes
	TagKey  [32]byte
	count   atomic.Int64
	changes atomic.Uint64 // raised after each change, once it is visible

	mu   sync.RWMutex
	all  map[Key]State
	tags map[uint64]int32 // number of records by tag
}

type Key struct {
	Service uint32
	kind    uint8
	hash    Hash
}

// State is the part of a suppression that is kept in memory.
type State struct {
	Reason    string
	At, Until int64 // Unix nanoseconds; Until 0: permanent
	Tag       uint64
}

func KeyOf(s *Record) Key {
	return Key{s.Service, s.Kind, s.Hash}
}

// Record returns the record of a state, without source and address.
func (k *Key) Record(s State) Record {
	return Record{Service: k.Service, Kind: k.kind, Hash: k.hash, Reason: s.Reason, At: s.At, Until: s.Until, Tag: s.Tag}
}

func (l *List) Set(records []Record) {
	if len(records) == 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.all == nil {
		l.all, l.tags = map[Key]State{}, map[uint64]int32{}
	}
	for i := range records {
		r := &records[i]
		key := KeyOf(r)
		if was, ok := l.all[key]; ok {
			delete(l.all, key)
			if l.tags[was.Tag]--; l.tags[was.Tag] <= 0 {
				delete(l.tags, was.Tag)
			}
		}
		if r.Lifted {
			continue
		}
		l.all[key] = State{internReason(r.Reason), r.At, r.Until, r.Tag}
		l.tags[r.Tag]++
	}
	l.count.Store(int64(len(l.all)))
	l.changes.Add(1)
}

// internReason returns one shared string for each reason.
func internReason(reason string) string {
	if i := Strength(reason); i >= 0 {
		return Reasons[i]
	}
	return reason
}

// Len returns the number of suppressed addresses.
func (l *List) Len() int { return int(l.count.Load()) }

// CountByReason counts the suppressed addresses by reason.
func (l *List) CountByReason() map[string]int {
	counts := make(map[string]int, len(Reasons))
	l.mu.RLock()
	defer l.mu.RUnlock()
	for _, s := range l.all {
		counts[s.Reason]++
	}
	return counts
}

// Select returns the first records in memory of a service with a reason ("": any) after a cursor, in the order of the list: at most limit, or all with 0.
func (l *List) Select(service uint32, reason string, after *Cursor, now int64, limit int) (all []Record) {
	trim := func() {
		slices.SortFunc(all, func(a, b Record) int { return later(&a, &b) })
		if limit > 0 && len(all) > limit {
			all = all[:limit]
		}
	}
	var last *Record // later ones are not among the first
	l.mu.RLock()
	for key, s := range l.all {
		if key.Service != service || reason != "" && reason != s.Reason || s.Until != 0 && s.Until <= now {
			continue
		}
		record := key.Record(s)
		if after != nil && !after.isBefore(&record) || last != nil && later(last, &record) < 0 {
			continue
		}
		if all = append(all, record); limit > 0 && len(all) == 2*limit {
			trim()
			kept := all[limit-1]
			last = &kept
		}
	}
	l.mu.RUnlock()
	trim()
	return all
}

// Expired returns records that lift at most most expired suppressions.
func (l *List) Expired(now int64, most int) (over []Record) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	for key, s := range l.all {
		if s.Until != 0 && s.Until <= now && len(over) < most {
			over = append(over, Record{Service: key.Service, Kind: key.kind, Hash: key.hash, Until: s.Until, Lifted: true})
		}
	}
	return over
}

// Version rises with each change, once the change is visible.
func (l *List) Version() uint64 { return l.changes.Load() }

// Get returns the suppression of an address at a time.
func (l *List) Get(key Key, now int64) (State, bool) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	found, ok := l.all[key]
	return found, ok && (found.Until == 0 || now < found.Until)
}

func (l *List) HasTag(tag uint64) bool {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.tags[tag] > 0
}

// InForce returns the suppression of an address in normal form: that of the service, else that of
// all services.
func (l *List) InForce(service uint32, kind uint8, address string, now int64) (key Key, s State, ok bool) {
	if l.count.Load() == 0 {
		return key, s, false
	}
	asked := l.NewRecord(service, kind, address)
	key = KeyOf(&asked)
	if s, ok = l.Get(key, now); !ok {
		key.Service = AllServices
		s, ok = l.Get(key, now)
	}
	return key, s, ok
}

// later is the order of the list.
func later(a, b *Record) int {
	return cmp.Or(cmp.Compare(b.At, a.At), cmp.Compare(b.Kind, a.Kind), bytes.Compare(b.Hash[:], a.Hash[:]))
}
