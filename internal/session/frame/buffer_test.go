package frame

import (
	"bytes"
	"testing"
)

func TestBufferHasSpace(t *testing.T) {
	for _, size := range []int{0, 1, minBuffer - 1, minBuffer, 16 << 10, 16<<10 + 1, 24 << 10, 64<<10 + HeaderSize, 72 << 10, 72<<10 + 1, 1<<20 + 200, MaxSize, MaxSize + bufferRest, MaxSize + bufferRest + 1, 3 * MaxSize} {
		for range 2 { // the second one may be a recycled one
			b := Buffer(size)
			if len(b) != 0 || cap(b) < size {
				t.Errorf("a buffer for %d bytes has %d bytes and space for %d", size, len(b), cap(b))
			}
			if size >= 16<<10 && size <= MaxSize && cap(b) > 2*size {
				t.Errorf("a buffer for %d bytes takes %d", size, cap(b))
			}
			Recycle(b)
		}
	}
}

func TestRecycleTakesWholeBuffersOnly(t *testing.T) {
	b := Buffer(64 << 10)
	b = append(b, bytes.Repeat([]byte("x"), 64<<10)...)
	for _, part := range [][]byte{b[HeaderSize:], b[: 32<<10 : 32<<10], nil, make([]byte, 100), make([]byte, 72<<10-1)} {
		Recycle(part)
	}
	if next := Buffer(64 << 10)[:64<<10]; &next[0] == &b[0] {
		t.Error("a part of a buffer was recycled")
	}
}

func TestGrowKeepsTheContent(t *testing.T) {
	want := []byte{}
	b := Buffer(10)
	for i := range 300 {
		part := bytes.Repeat([]byte{byte(i)}, 1000)
		if b = Grow(b, len(part)); cap(b)-len(b) < len(part) {
			t.Fatalf("there is space for %d bytes, want %d", cap(b)-len(b), len(part))
		}
		b, want = append(b, part...), append(want, part...)
	}
	if !bytes.Equal(b, want) {
		t.Error("the content has changed")
	}
}
