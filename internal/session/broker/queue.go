package broker

import (
	"encoding/binary"
	"math/bits"
	"time"

	"fanfare.dev/fanfare/internal/session"
	"fanfare.dev/fanfare/internal/session/frame"
)

// A request waits in the queue of its client or runs at an instance. It is a value, so that a frame of requests needs no
// allocation for each of them: record is a part of the frame that the client sent.
type request struct {
	record []byte
	number uint64
	queued int64 // when it was accepted, in microseconds since 1970
	extra  *extra
	lease  *lease // of record; nil: the garbage collector frees it
}

// A lease counts the requests that use the memory of a frame. The mutex of the pool guards it.
type lease struct {
	frame []byte
	uses  int
}

// free gives back the memory of a request that has its response: nothing uses record any more. Other ends of a request are rare,
// and leave the memory to the garbage collector.
func (r *request) free() {
	l := r.lease
	if l == nil {
		return
	}
	r.lease = nil
	if l.uses--; l.uses == 0 {
		frame.Recycle(l.frame)
		l.frame = nil
	}
}

// extra is what only a few requests have.
type extra struct {
	dispatched []session.Dispatch // earlier attempts
	attempts   uint16
	resends    uint16
	avoid      *instance // returned the request with status retry: it is tried last
	marked     bool      // its started mark is durable
}

// The offsets of the fields follow the table in docs/reference/session-protocol.md.

func (r *request) timeout() uint32 { return binary.LittleEndian.Uint32(r.record[4:]) }

func (r *request) action() []byte {
	begin := frame.RequestSize + int(binary.LittleEndian.Uint16(r.record[8:]))
	return r.record[begin : begin+int(binary.LittleEndian.Uint16(r.record[10:]))]
}

func (r *request) body() []byte {
	return r.record[len(r.record)-int(binary.LittleEndian.Uint32(r.record)):]
}

func (r *request) id() []byte {
	return r.record[frame.RequestSize : frame.RequestSize+int(binary.LittleEndian.Uint16(r.record[8:]))]
}

func (r *request) userData() []byte {
	end := len(r.record) - int(binary.LittleEndian.Uint32(r.record))
	return r.record[end-int(binary.LittleEndian.Uint16(r.record[12:])) : end]
}

// A queue is a ring of requests that is open at both ends.
type queue struct {
	ring  []request // its length is a power of two
	head  int
	n     int
	bytes int64
}

func (q *queue) grow() {
	ring := make([]request, max(16, 2*len(q.ring)))
	k := copy(ring, q.ring[min(q.head, len(q.ring)):])
	copy(ring[k:], q.ring[:q.head])
	q.ring, q.head = ring, 0
}

func (q *queue) pushBack(r request) {
	if q.n == len(q.ring) {
		q.grow()
	}
	q.ring[(q.head+q.n)&(len(q.ring)-1)] = r
	q.n++
	q.bytes += int64(len(r.record))
}

func (q *queue) pushFront(r request) {
	if q.n == len(q.ring) {
		q.grow()
	}
	q.head = (q.head - 1) & (len(q.ring) - 1)
	q.ring[q.head] = r
	q.n++
	q.bytes += int64(len(r.record))
}

func (q *queue) front() *request { return &q.ring[q.head] }

func (q *queue) pop() request {
	r := q.ring[q.head]
	q.ring[q.head] = request{}
	q.head = (q.head + 1) & (len(q.ring) - 1)
	q.n--
	q.bytes -= int64(len(r.record))
	if q.n == 0 && len(q.ring) > 8192 {
		*q = queue{}
	}
	return r
}

// each calls fn for the requests in order.
func (q *queue) each(fn func(*request)) {
	for i := range q.n {
		fn(&q.ring[(q.head+i)&(len(q.ring)-1)])
	}
}

// answered is the set of the requests of a client that need no response any more: all up to floor, and those whose bits are set.
type answered struct {
	floor uint64
	base  uint64 // number of bit 0 of words[0]; a multiple of 64
	words []uint64
}

// restoredAnswered returns the set of all requests up to floor.
func restoredAnswered(floor uint64) answered {
	return answered{floor: floor, base: floor &^ 63}
}

// add adds a number and raises the floor.
func (a *answered) add(number uint64) {
	if number <= a.floor {
		return
	}
	i := int((number - a.base) / 64)
	for i >= len(a.words) {
		a.words = append(a.words, 0)
	}
	a.words[i] |= 1 << (number & 63)
	for {
		next := a.floor + 1
		i := int((next - a.base) / 64)
		if i >= len(a.words) {
			break
		}
		run := uint64(bits.TrailingZeros64(^(a.words[i] >> (next & 63))))
		run = min(run, 64-next&63)
		if run == 0 {
			break
		}
		a.floor += run
	}
	if drop := int((a.floor+1)/64 - a.base/64); drop > 0 {
		drop = min(drop, len(a.words))
		a.base += uint64(drop) * 64
		a.words = a.words[drop:]
		if len(a.words) == 0 {
			a.words = nil
			a.base = (a.floor + 1) &^ 63
		}
	}
}

// addAll adds the numbers from first to last.
func (a *answered) addAll(first, last uint64) {
	for n := first; n <= last; n++ {
		a.add(n)
	}
}

func (a *answered) has(number uint64) bool {
	if number <= a.floor {
		return true
	}
	if number < a.base {
		return false
	}
	i := (number - a.base) / 64
	return i < uint64(len(a.words)) && a.words[i]>>(number&63)&1 == 1
}

// micros returns a time in microseconds since 1970, the unit of this package.
func micros(t time.Time) int64 { return t.UnixMicro() }
