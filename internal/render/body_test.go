package render

import (
	"bytes"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// drawBody makes a body of stretches, shared and personal ones in turn.
func drawBody(t *rapid.T, stretch *rapid.Generator[string]) (b body) {
	chunks := []chunk{newChunk([]byte(stretch.Draw(t, "chunk")))}
	for range rapid.IntRange(0, 3).Draw(t, "pieces") {
		b.values = append(b.values, stretch.Draw(t, "piece")...)
		b.ends = append(b.ends, len(b.values))
		chunks = append(chunks, newChunk([]byte(stretch.Draw(t, "chunk"))))
	}
	b.share(chunks)
	return b
}

// The bound that spares measuring gives the answer that measuring gives.
func TestWhetherABodyIsSevenBitIsWhatItsMeasureSays(t *testing.T) {
	stretch := rapid.Custom(func(t *rapid.T) string {
		return strings.Repeat("x", rapid.IntRange(0, hardLine/2+1).Draw(t, "x")) + rapid.SampledFrom([]string{"", "\n", "ä", "\n\n", "a\nb"}).Draw(t, "end")
	})
	rapid.Check(t, func(t *rapid.T) {
		b := drawBody(t, stretch)
		whole := string(b.appendText(nil))
		if got, want := b.sevenBit(), measureText([]byte(whole)).sevenBit(); got != want || b.measure().sevenBit() != want {
			t.Fatalf("%t, measured in pieces %t and as a whole %t: %q", got, b.measure().sevenBit(), want, whole)
		}
	})
}

// A body that is said to have no dot at the start of a line has none, and one that is
// not said so has a line end before a dot somewhere.
func TestDotsAtTheStartOfLinesAreSeenWhateverTheyAreMadeOf(t *testing.T) {
	stretch := rapid.StringMatching(`[.x\n]{0,4}`)
	rapid.Check(t, func(t *rapid.T) {
		b := drawBody(t, stretch)
		before := []byte("X: y\r\n\r\n")
		out, dots := b.appendPlain(before)
		if has := bytes.Contains(out, lineDot); has && !dots || dots && !has && !bytes.Contains(b.values, lineDot) {
			t.Fatalf("said %t of %q", dots, out)
		}
	})
}

func TestALetterOfPlainTextSaysThatItHasNoDots(t *testing.T) {
	for text, want := range map[string]bool{
		"Hello {{ subscriber.id }}.\nBye.":            true,
		"Hello\n{{ subscriber.id }}":                  true,
		"Hello\n.{{ subscriber.id }}":                 false,
		".{{ subscriber.id }}":                        false,
		"{{ subscription.data.none | default: '.' }}": false,
		"Größe 5 {{ subscriber.id }}":                 false, // quoted-printable
	} {
		w, err := newMailing(t, Source{Subject: "x", Text: text}, `{}`).Writer()
		if err != nil {
			t.Fatal(err)
		}
		letter, _, err := w.Write(nil, newRecipient())
		if err != nil {
			t.Fatal(err)
		}
		if letter.NoDotStuffing != want {
			t.Errorf("%q: %t", text, letter.NoDotStuffing)
		}
	}
}
