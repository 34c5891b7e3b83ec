package format

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// The bound that spares measuring gives the answer that measuring gives.
func TestWhetherABodyIsSevenBitIsWhatItsMeasureSays(t *testing.T) {
	stretch := rapid.Custom(func(t *rapid.T) string {
		return strings.Repeat("x", rapid.IntRange(0, hardLine/2+1).Draw(t, "x")) + rapid.SampledFrom([]string{"", "\n", "ä", "\n\n", "a\nb"}).Draw(t, "end")
	})
	rapid.Check(t, func(t *rapid.T) {
		var b body
		chunks := []chunk{newChunk([]byte(stretch.Draw(t, "chunk")))}
		for range rapid.IntRange(0, 3).Draw(t, "pieces") {
			b.values = append(b.values, stretch.Draw(t, "piece")...)
			b.ends = append(b.ends, len(b.values))
			chunks = append(chunks, newChunk([]byte(stretch.Draw(t, "chunk"))))
		}
		b.share(chunks)
		whole := string(b.appendText(nil))
		if got, want := b.sevenBit(), measureText([]byte(whole)).sevenBit(); got != want || b.measure().sevenBit() != want {
			t.Fatalf("%t, measured in pieces %t and as a whole %t: %q", got, b.measure().sevenBit(), want, whole)
		}
	})
}
