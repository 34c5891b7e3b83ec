package mail

import (
	"strings"
	"testing"

	"fanfare.dev/fanfare/internal/mailbox"
)

func TestACacheOfContentsKeepsTheLastUsedUpToItsLimit(t *testing.T) {
	c := newContentCache[searchedText](100_000, 5000)
	key := func(i int) digestKey { return digestKey{content: mailbox.ContentID(i)} }
	text := func(i int) searchedText { return searchedText(strings.Repeat(string(rune('a'+i%26)), 800)) } // costs 1,000
	for i := range 300 {
		c.put(key(i), text(i))
		if got, ok := c.get(key(0)); !ok || got != text(0) {
			t.Fatalf("the text that is used again and again was dropped after %d others", i)
		}
	}
	if len(c.entries) != 100 || c.order.Len() != 100 || c.size != 100_000 {
		t.Errorf("%d entries, %d in order, size %d", len(c.entries), c.order.Len(), c.size)
	}
	for i, want := range map[int]bool{0: true, 1: false, 200: false, 299: true} {
		if got, ok := c.get(key(i)); ok != want || ok && got != text(i) {
			t.Errorf("text %d is there: %v", i, ok)
		}
	}
	c.put(key(1000), searchedText(strings.Repeat("x", 5000)))
	if _, ok := c.get(key(1000)); ok {
		t.Error("a text above the limit is cached")
	}
}
