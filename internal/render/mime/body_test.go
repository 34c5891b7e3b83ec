package mime

import (
	"bytes"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// drawBody generates a body of alternating shared and personal parts.
func drawBody(t *rapid.T, stretch *rapid.Generator[string]) (b Body) {
	chunks := []Chunk{NewChunk([]byte(stretch.Draw(t, "chunk")))}
	for range rapid.IntRange(0, 3).Draw(t, "pieces") {
		b.Values = append(b.Values, stretch.Draw(t, "piece")...)
		b.Ends = append(b.Ends, len(b.Values))
		chunks = append(chunks, NewChunk([]byte(stretch.Draw(t, "chunk"))))
	}
	b.SetShared(chunks)
	return b
}

func TestMeasureTellsWhetherBodyIsSevenBit(t *testing.T) {
	stretch := rapid.Custom(func(t *rapid.T) string {
		return strings.Repeat("x", rapid.IntRange(0, hardLine/2+1).Draw(t, "x")) + rapid.SampledFrom([]string{"", "\n", "ä", "\n\n", "a\nb"}).Draw(t, "end")
	})
	rapid.Check(t, func(t *rapid.T) {
		b := drawBody(t, stretch)
		whole := string(b.AppendText(nil))
		if got, want := b.SevenBit(), lineStatsOf([]byte(whole)).sevenBit(); got != want || b.measure().sevenBit() != want {
			t.Fatalf("%t, measured in pieces %t and as a whole %t: %q", got, b.measure().sevenBit(), want, whole)
		}
	})
}

// If AppendPlain reports no dots, no line begins with a dot. If it reports dots, a line or a
// value has a dot after a line end.
func TestDotsAtLineStartsAreFound(t *testing.T) {
	stretch := rapid.StringMatching(`[.x\n]{0,4}`)
	rapid.Check(t, func(t *rapid.T) {
		b := drawBody(t, stretch)
		before := []byte("X: y\r\n\r\n")
		out, dots := b.AppendPlain(before)
		if has := bytes.Contains(out, lineDot); has && !dots || dots && !has && !bytes.Contains(b.Values, lineDot) {
			t.Fatalf("said %t of %q", dots, out)
		}
	})
}
