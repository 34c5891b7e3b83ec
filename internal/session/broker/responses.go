package broker

import (
	"slices"

	"fanfare.dev/fanfare/internal/session/frame"
)

// chunkBytes is the size at which a chunk is complete.
const chunkBytes = 256 << 10

// A chunk is a frame of responses. It is encoded once: the same bytes are sent, kept until they are confirmed, and stored.
type chunk struct {
	frame  []byte // with space for a header
	first  uint64 // number of the first response
	count  uint32
	sealed bool // no response is added any more
	high   uint64
	traces []byte // of a durable session: TraceEntry
	names  []string

	writers int  // connections that send the frame
	over    bool // it was removed and may be recycled
}

// recycle returns the memory of a chunk that was removed, when no connection sends it any more. If a connection ends while it
// sends the chunk, the garbage collector takes it.
func (k *chunk) recycle() {
	if k.over && k.writers == 0 {
		frame.Recycle(k.frame)
		k.frame = nil
	}
}

func (k *chunk) last() uint64 { return k.first + uint64(k.count) - 1 }

// seal completes the frame and returns it.
func (k *chunk) seal() []byte {
	if !k.sealed {
		k.sealed = true
		frame.SetHeader(k.frame, frame.Header{Type: frame.Responses, Count: k.count, First: k.first})
	}
	return k.frame
}

// since returns a frame with the responses from a number on.
func (k *chunk) since(number uint64) []byte {
	if number <= k.first {
		return k.seal()
	}
	return cut(k.frame[frame.HeaderSize:], k.first, k.count, number)
}

// cut returns a frame with the responses from a number on, out of records that begin with the number first.
func cut(records []byte, first uint64, count uint32, number uint64) []byte {
	skip := uint32(0)
	if number > first {
		skip = uint32(number - first) // #nosec G115 -- less than count
	}
	for range skip {
		var r frame.Response
		rest, err := frame.NextResponse(records, &r)
		if err != nil {
			break
		}
		records = rest
	}
	b := frame.AppendHeader(make([]byte, 0, frame.HeaderSize+len(records)), frame.Header{Type: frame.Responses, Count: count - skip, First: first + uint64(skip)})
	return append(b, records...)
}

// chunks are the responses of a client that are in memory, in order and without gaps.
type chunks struct {
	list  []*chunk
	bytes int
	size  int // of the chunk that was completed last: the next one is expected to be as large

	recycled bool // the memory of chunks that were removed is used again
}

// tail returns the chunk to which a response with a number and a size is added.
func (s *chunks) tail(number uint64, size int) *chunk {
	s.bytes += size
	if n := len(s.list); n > 0 {
		k := s.list[n-1]
		if !k.sealed && k.count < frame.MaxRecords && len(k.frame)+size <= chunkBytes {
			return k
		}
		s.size = len(k.frame)
		k.seal()
	}
	s.bytes += frame.HeaderSize
	k := &chunk{first: number}
	if space := max(frame.HeaderSize+size, min(s.size+s.size/8, chunkBytes)); s.recycled {
		k.frame = frame.Buffer(space)[:frame.HeaderSize]
	} else {
		k.frame = make([]byte, frame.HeaderSize, space)
	}
	s.list = append(s.list, k)
	return k
}

// at returns the chunk that has a number, or nil.
func (s *chunks) at(number uint64) *chunk {
	i, _ := slices.BinarySearchFunc(s.list, number, func(k *chunk, n uint64) int {
		switch {
		case k.last() < n:
			return -1
		case k.first > n:
			return 1
		}
		return 0
	})
	if i < len(s.list) && s.list[i].first <= number && number <= s.list[i].last() {
		return s.list[i]
	}
	return nil
}

// removeTo removes the chunks whose responses all have numbers up to last.
func (s *chunks) removeTo(last uint64) {
	n := 0
	for n < len(s.list) && s.list[n].last() <= last {
		s.bytes -= len(s.list[n].frame)
		if s.recycled {
			s.list[n].over = true
			s.list[n].recycle()
		}
		s.list[n] = nil
		n++
	}
	if s.list = s.list[n:]; len(s.list) == 0 {
		s.list, s.bytes = nil, 0
	}
}
