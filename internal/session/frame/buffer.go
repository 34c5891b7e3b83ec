package frame

import (
	"math/bits"
	"sync"
)

// Memory for large frames is used again: a broker that passes on 100 MB/s in frames of 64 KiB would otherwise spend as much
// time on clearing and collecting memory as on the frames. The capacities of buffers are powers of two and 8 KiB more, so that
// a body of 64 KiB or 1 MiB and its header fit.
const (
	bufferRest = 8 << 10
	minBuffer  = 1 << 13 // less is not used again
	maxBuffer  = MaxSize
)

var buffers [10]sync.Pool // of minBuffer << i + bufferRest bytes

// Buffer returns an empty buffer with space for at least size bytes.
func Buffer(size int) []byte {
	i := bits.Len(uint(max(size-bufferRest-1, 0))) - bits.Len(minBuffer-1)
	if size < minBuffer || i >= len(buffers) {
		return make([]byte, 0, size)
	}
	i = max(i, 0)
	if b, ok := buffers[i].Get().(*[]byte); ok {
		return (*b)[:0]
	}
	return make([]byte, 0, minBuffer<<i+bufferRest)
}

// Recycle takes a frame that nobody uses any more as memory for a later Buffer. To call it is optional: the garbage collector
// takes what is not recycled. A slice of a part of a buffer is not recycled.
func Recycle(b []byte) {
	c := cap(b) - bufferRest
	if c < minBuffer || c > maxBuffer || c&(c-1) != 0 {
		return
	}
	b = b[:0]
	if poison {
		overwrite(b[:cap(b)])
	}
	buffers[bits.Len(uint(c))-bits.Len(minBuffer)].Put(&b)
}

// Grow returns b with space for n further bytes. If b must move, its former memory is recycled.
func Grow(b []byte, n int) []byte {
	if cap(b)-len(b) >= n {
		return b
	}
	grown := append(Buffer(max(len(b)+n, 2*len(b))), b...)
	Recycle(b)
	return grown
}

func overwrite(b []byte) {
	b[0] = 0xdb
	for n := 1; n < len(b); n *= 2 { // a loop over bytes takes seconds under the race detector
		copy(b[n:], b[:n])
	}
}
