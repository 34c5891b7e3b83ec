package ngram

import (
	"testing"

	"strings"
)

func TestATextIsFoundAtAnyPositionOfItsNgram(t *testing.T) {
	var n Index
	texts := []string{"a", "ab", "abc", "abcd", "xabcd", "abcdx", "cabcabcd", "ü", "日本", "abcabc", "bcab", "abcdefgh", "xabcdefghabcdefgh", "bcdefghabcdefg"}
	for i, text := range texts {
		n.Add(text, uint32(i+1))
	}
	hays := []string{"", "a", "zzab", "abcabcabcd", "xabcdx", "日本語", "ü", "üabc", "zabcdefghz", "xabcdefghabcdefghx"}
	check := func() {
		t.Helper()
		for _, hay := range hays {
			got := map[uint32]bool{}
			n.Find(hay, func(number uint32) { got[number] = true })
			for i, text := range texts {
				if want := text != "" && strings.Contains(hay, text); got[uint32(i+1)] != want {
					t.Errorf("%q in %q: %v, want %v", text, hay, !want, want)
				}
			}
		}
	}
	check()
	for i := 0; i < len(texts); i += 2 {
		n.Remove(texts[i], uint32(i+1))
		texts[i] = ""
	}
	check()
	for i := 1; i < len(texts); i += 2 {
		n.Remove(texts[i], uint32(i+1))
	}
	for _, tier := range n.tables {
		if len(tier.entries) > 0 {
			t.Errorf("grams of texts that were dropped are kept: %v", tier.entries)
		}
	}
}
