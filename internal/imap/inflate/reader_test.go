package inflate

import (
	"bytes"
	"compress/flate"
	"encoding/hex"
	"errors"
	"io"
	"math/rand/v2"
	"testing"
)

// Two flushes of one stream.
const firstFlush, secondFlush = "4a3454f0f3f70fe0e50208", "a0442318c358c1c7dfdd3f3484970b20"

// TestPartialFlushIsReturnedAtOnce has the output of zlib 1.2.13 with Z_PARTIAL_FLUSH. The reader must not ask for more input.
func TestPartialFlushIsReturnedAtOnce(t *testing.T) {
	in, out := io.Pipe()
	r := NewReader(in)
	for _, c := range []struct{ compressed, text string }{
		{firstFlush, "a1 NOOP\r\n"}, {secondFlush, "a2 NOOP\r\na3 LOGOUT\r\n"},
	} {
		raw, err := hex.DecodeString(c.compressed)
		if err != nil {
			t.Fatal(err)
		}
		go func() { _, _ = out.Write(raw) }()
		got := make([]byte, len(c.text))
		if _, err := io.ReadFull(r, got); err != nil || string(got) != c.text {
			t.Fatalf("got %q, %v", got, err)
		}
	}
}

// samples returns data of several kinds.
func samples() [][]byte {
	r := rand.New(rand.NewPCG(1, 2))
	random := make([]byte, 100_000)
	for i := range random {
		random[i] = byte(r.Uint32())
	}
	text := make([]byte, 200_000)
	for i := range text {
		text[i] = "the quick brown fox "[r.IntN(20)]
	}
	return [][]byte{nil, []byte("x"), random, text, bytes.Repeat([]byte{0}, 300_000), append(bytes.Clone(text[:40_000]), random[:40_000]...)}
}

func TestStreamsAreDecompressed(t *testing.T) {
	for i, data := range samples() {
		for level := flate.HuffmanOnly; level <= flate.BestCompression; level++ {
			var compressed bytes.Buffer
			w, err := flate.NewWriter(&compressed, level)
			if err != nil {
				t.Fatal(err)
			}
			for rest := data; len(rest) > 0; {
				n := min(len(rest), 30_000)
				if _, err := w.Write(rest[:n]); err != nil {
					t.Fatal(err)
				}
				if err := w.Flush(); err != nil {
					t.Fatal(err)
				}
				rest = rest[n:]
			}
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			got, err := io.ReadAll(NewReader(&compressed))
			if err != nil || !bytes.Equal(got, data) {
				t.Errorf("sample %d, level %d: %d bytes, want %d, %v", i, level, len(got), len(data), err)
			}
		}
	}
}

func TestEndedStreamsAreNotComplete(t *testing.T) {
	raw, err := hex.DecodeString(firstFlush)
	if err != nil {
		t.Fatal(err)
	}
	for n := range len(raw) - 1 {
		if _, err := io.ReadAll(NewReader(bytes.NewReader(raw[:n]))); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%d bytes: %v", n, err)
		}
	}
}

// FuzzReader compares the reader with that of package compress/flate. Both must return the same bytes, and must agree on whether a stream is valid.
func FuzzReader(f *testing.F) {
	for _, data := range samples() {
		var compressed bytes.Buffer
		w, _ := flate.NewWriter(&compressed, 6)
		_, _ = w.Write(data[:min(len(data), 2000)])
		_ = w.Close()
		f.Add(compressed.Bytes())
	}
	for _, text := range []string{firstFlush, secondFlush} {
		raw, _ := hex.DecodeString(text)
		f.Add(raw)
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		const most = 1 << 20
		want, wantErr := io.ReadAll(io.LimitReader(flate.NewReader(bytes.NewReader(raw)), most))
		got, err := io.ReadAll(io.LimitReader(NewReader(bytes.NewReader(raw)), most))
		if (err == nil) != (wantErr == nil) || err == nil && !bytes.Equal(got, want) || !bytes.HasPrefix(got, want) && !bytes.HasPrefix(want, got) {
			t.Fatalf("%d bytes, %v; want %d bytes, %v", len(got), err, len(want), wantErr)
		}
	})
}
