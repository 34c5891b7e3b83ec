package searchfilter_test

import (
	"math/rand/v2"
	"strings"
	"testing"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"fanfare.dev/fanfare/internal/mailbox/searchfilter"
)

// The folds of the searches, written again: those of IMAP (RFC 5051) and of JMAP.
func imapFold(s string) string { return norm.NFKD.String(strings.ToUpper(s)) }
func jmapFold(s string) string { return strings.ToLower(norm.NFC.String(s)) }

// alphabet has characters whose case, decomposition or order of marks is special.
var alphabet = []rune("abcdefiIkKsS \t\n\r.,<>@=?-0189" +
	"äöüßẞéÉèñçÅåŠšıİſKΩΩσςΣϑΐΰᾳᾼᾲἰΙιЖжйЙёҐ漢字仮名かガパﾊﾟ한국어각가각ﬁﬃ½²™ℌ㎏①Ǆǅǆŉǰẖͅ" +
	"\u0300\u0301\u0308\u0323\u0327\u0338\u0345\u034f\u00a0\u2003\u200b\u00ad\u200d\ufe0f\ufeff\ufffd\u0085" +
	"😀👩🏽‍💻🇩🇪𝔄𝒷𐐀𐐨𞤀𞤢\U0001d15e")

func randomText(r *rand.Rand, n int) string {
	var b strings.Builder
	for range n {
		switch r.IntN(40) {
		case 0:
			b.WriteByte(byte(0x80 + r.IntN(128))) // not UTF-8
		case 1:
			b.WriteString(strings.Repeat(string(alphabet[r.IntN(len(alphabet))]), 1+r.IntN(40)))
		case 2:
			if c := rune(r.IntN(unicode.MaxRune)); c < 0xd800 || c > 0xdfff {
				b.WriteRune(c)
			}
		default:
			b.WriteRune(alphabet[r.IntN(len(alphabet))])
		}
	}
	return b.String()
}

func filterOf(texts ...string) searchfilter.Filter {
	var b searchfilter.Builder
	for _, text := range texts {
		b.Add(text)
	}
	return b.Filter()
}

// part returns a part of a text, as a user may enter it.
func part(r *rand.Rand, text string) string {
	all := []rune(text + "!")
	from := r.IntN(len(all))
	pattern := string(all[from:min(len(all), from+1+r.IntN(12))])
	switch r.IntN(6) {
	case 0:
		pattern = strings.ToUpper(pattern)
	case 1:
		pattern = strings.ToLower(pattern)
	case 2:
		pattern = norm.NFD.String(pattern)
	case 3:
		pattern = norm.NFC.String(pattern)
	}
	return pattern
}

func TestAFilterExcludesNoTextThatASearchFinds(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	found, excluded := 0, 0
	for range 5000 {
		text := randomText(r, 1+r.IntN(60))
		other := randomText(r, 1+r.IntN(60))
		filter := filterOf(text)
		for _, pattern := range []string{part(r, text), part(r, imapFold(text)), part(r, jmapFold(text)), part(r, other), part(r, text+other)} {
			is := strings.Contains(imapFold(text), imapFold(pattern)) || strings.Contains(jmapFold(text), jmapFold(pattern))
			may := filter.MayContain(searchfilter.NewPattern(pattern))
			if is && !may {
				t.Fatalf("the filter of %q excludes %q", text, pattern)
			}
			if is {
				found++
			}
			if !may {
				excluded++
			}
		}
	}
	if found < 2500 || excluded < 2500 {
		t.Errorf("%d texts were found and %d excluded: the test has lost its power", found, excluded)
	}
}

func TestEveryCharacterIsEqualInAllFolds(t *testing.T) {
	for c := rune(0); c <= unicode.MaxRune; c++ {
		if c >= 0xd800 && c <= 0xdfff {
			continue
		}
		text := "<" + string(c) + ">"
		if c%97 != 0 && imapFold(text) == text && jmapFold(text) == text && norm.NFKC.String(text) == text {
			continue // nothing happens to most characters
		}
		filter := filterOf(text)
		for _, pattern := range []string{text, imapFold(text), jmapFold(text), norm.NFD.String(text), norm.NFKC.String(text), "<" + string(unicode.ToUpper(c)) + ">", "<" + string(unicode.ToLower(c)) + ">"} {
			if !filter.MayContain(searchfilter.NewPattern(pattern)) {
				t.Errorf("the filter of %q (%U) excludes %q", text, c, pattern)
			}
		}
	}
}

func TestShortAndInvalidPatternsExcludeNothing(t *testing.T) {
	filter := filterOf("something else")
	for _, pattern := range []string{"", "x", "xy", "漢字", "x\u0301y\u0308", "xyz\xff", "   \t\n  ", "\u0301\u0302\u0303\u0304"} {
		if n := searchfilter.NewPattern(pattern); !n.IsEmpty() || !filter.MayContain(n) {
			t.Errorf("%q excludes messages", pattern)
		}
	}
	if n := searchfilter.NewPattern("xyz"); n.IsEmpty() || filter.MayContain(n) {
		t.Error("xyz does not exclude a message without it")
	}
}

func TestTextsOfAMessageAreSeparate(t *testing.T) {
	filter := filterOf("winter", "summer")
	for pattern, want := range map[string]bool{"winter": true, "SUMMER": true, "ter": true, "ersum": false, "tersumm": false} {
		if got := filter.MayContain(searchfilter.NewPattern(pattern)); got != want {
			t.Errorf("%q: %v, want %v", pattern, got, want)
		}
	}
}

func TestAMessageWithTooManyRunsIsNeverExcluded(t *testing.T) {
	var b searchfilter.Builder
	r := rand.New(rand.NewPCG(3, 4))
	var text strings.Builder
	for range 70_000 {
		text.WriteRune(rune(0x4e00 + r.IntN(20_000)))
	}
	b.Add(text.String())
	filter := b.Filter()
	if len(filter) != 0 || !filter.MayContain(searchfilter.NewPattern("absent")) {
		t.Errorf("the filter has %d bytes", len(filter))
	}
	b.Add("present")
	if filter = b.Filter(); filter.MayContain(searchfilter.NewPattern("absent")) || !filter.MayContain(searchfilter.NewPattern("present")) {
		t.Error("the builder kept runs of the message before")
	}
}

// The bytes are stored: a change of the fold or of the runs needs a new Version.
func TestAFilterOfThisVersionHasTheseBytes(t *testing.T) {
	const want = "05044031500a20107001069004016058d4c700040a40002020400032"
	if got := hexOf(filterOf("Straße, İstanbul")); got != want {
		t.Errorf("the filter is %s, want %s: raise Version", got, want)
	}
}

func hexOf(b []byte) string {
	const digits = "0123456789abcdef"
	var s strings.Builder
	for _, c := range b {
		s.WriteByte(digits[c>>4])
		s.WriteByte(digits[c&15])
	}
	return s.String()
}

func FuzzFilter(f *testing.F) {
	f.Add("Grüße aus İstanbul", "istanbul")
	f.Add("e\u0323\u0301", "é")
	f.Fuzz(func(t *testing.T, text, pattern string) {
		is := strings.Contains(imapFold(text), imapFold(pattern)) || strings.Contains(jmapFold(text), jmapFold(pattern))
		if is && !filterOf(text).MayContain(searchfilter.NewPattern(pattern)) {
			t.Fatalf("the filter of %q excludes %q", text, pattern)
		}
	})
}

func BenchmarkBuild(b *testing.B) {
	r := rand.New(rand.NewPCG(5, 6))
	var text strings.Builder
	for text.Len() < 40_000 {
		for range 2 + r.IntN(8) {
			text.WriteByte("etaoinshrdlucmfwyp"[r.IntN(18)])
		}
		text.WriteByte(' ')
	}
	var builder searchfilter.Builder
	b.SetBytes(int64(text.Len()))
	for b.Loop() {
		builder.Add(text.String())
		builder.Filter()
	}
}
