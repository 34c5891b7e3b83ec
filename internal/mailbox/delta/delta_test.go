package delta_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"fanfare.dev/fanfare/internal/mailbox/delta"
)

// mail returns a message of a broadcast with the values of a person.
func mail(r *rand.Rand, n int) []byte {
	name := []string{"Ada", "Grace", "Édith", "Bob", "Maximiliane-Charlotte"}[r.IntN(5)]
	token := fmt.Sprintf("%016x%016x", r.Uint64(), r.Uint64())
	text := strings.Repeat("A long text that is the same for all people who get it.\r\n", 20)
	extra := ""
	if r.IntN(10) == 0 {
		extra = "You asked for this in 2024.\r\n"
	}
	return fmt.Appendf(nil, "From: News <news@example.org>\r\nTo: person%d@example.org\r\nMessage-ID: <dlv-%x@example.org>\r\nList-Unsubscribe: <https://example.org/u/%s>\r\nSubject: News\r\n\r\nHello %s,\r\n%s%sLeave: https://example.org/u/%s\r\n",
		n, n, token, name, text, extra, token)
}

func TestADeltaStandsForItsMessage(t *testing.T) {
	r := rand.New(rand.NewPCG(23, 2))
	messages := make([][]byte, 1000)
	for i := range messages {
		messages[i] = mail(r, i)
	}
	base := delta.Learn(messages)
	total := 0
	for i, m := range messages {
		d := base.Append(nil, m)
		got, err := delta.Expand(nil, base.Bytes(), d)
		if err != nil || !bytes.Equal(got, m) {
			t.Fatalf("message %d became %q, %v", i, got, err)
		}
		total += len(d)
	}
	if average := total / len(messages); average > 200 {
		t.Errorf("a delta has %d bytes; the values of a message have about 110", average)
	}
}

func TestTheBaseHasNoValueOfASingleMessage(t *testing.T) {
	r := rand.New(rand.NewPCG(23, 4))
	messages := make([][]byte, 200)
	for i := range messages {
		messages[i] = mail(r, i)
	}
	base := delta.Learn(messages).Bytes()
	for i, m := range messages {
		token := m[bytes.Index(m, []byte("/u/"))+3:][:32]
		if bytes.Contains(base, token) || bytes.Contains(base, fmt.Appendf(nil, "person%d@", i)) {
			t.Fatalf("the base has values of message %d: %q", i, base)
		}
	}
	if len(base) < 1000 {
		t.Errorf("the base has only %d bytes", len(base))
	}
}

func TestMessagesWithoutCommonPartsAreStoredWhole(t *testing.T) {
	messages := [][]byte{[]byte("one"), []byte("two, which is longer than the shortest part"), {}, []byte(strings.Repeat("x", 100_000))}
	base := delta.Learn(messages)
	for _, m := range messages {
		got, err := delta.Expand(nil, base.Bytes(), base.Append(nil, m))
		if err != nil || !bytes.Equal(got, m) {
			t.Errorf("%.40q became %.40q, %v", m, got, err)
		}
	}
}

func TestADamagedDeltaIsRefused(t *testing.T) {
	base := []byte(strings.Repeat("base ", 20))
	for _, d := range [][]byte{{5}, {0, 200, 1}, {0, 0, 101}, {0, 0}, {0, 0xff}, {0, 60, 50}, {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01}} {
		if got, err := delta.Expand(nil, base, d); err == nil {
			t.Errorf("%v became %q", d, got)
		}
	}
}

func FuzzDelta(f *testing.F) {
	r := rand.New(rand.NewPCG(23, 3))
	f.Add(mail(r, 1), mail(r, 2), mail(r, 3))
	f.Add([]byte(""), []byte("a"), []byte("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"))
	f.Fuzz(func(t *testing.T, a, b, c []byte) {
		messages := [][]byte{a, b, c}
		base := delta.Learn(messages)
		for _, m := range messages {
			got, err := delta.Expand(nil, base.Bytes(), base.Append(nil, m))
			if err != nil || !bytes.Equal(got, m) {
				t.Fatalf("%q with the base %q became %q, %v", m, base.Bytes(), got, err)
			}
		}
		_, _ = delta.Expand(nil, a, b) // must not panic
	})
}

func BenchmarkDelta(b *testing.B) {
	r := rand.New(rand.NewPCG(23, 2))
	messages := make([][]byte, 1000)
	for i := range messages {
		messages[i] = mail(r, i)
	}
	b.ReportAllocs()
	var buf []byte
	for b.Loop() {
		base := delta.Learn(messages)
		for _, m := range messages {
			buf = base.Append(buf[:0], m)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/1000, "ns/message")
}
