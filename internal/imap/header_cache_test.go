package imap

import (
	"bytes"
	"fmt"
	"testing"

	"fanfare.dev/fanfare/internal/mailbox"
)

func TestTheHeaderCacheKeepsTheNewestHeadersUpToItsLimit(t *testing.T) {
	var c headerCache
	header := func(i int) []byte {
		return append(fmt.Appendf(nil, "Subject: %d\r\n", i), bytes.Repeat([]byte("x"), 16<<10)...)
	}
	const n = 5000 // more than the limit
	c.put(1, header(1))
	for i := 2; i <= n; i++ {
		c.put(mailbox.ContentID(i), header(i))
		if _, ok := c.get(1); !ok {
			t.Fatalf("the header that is used again and again was dropped after %d others", i)
		}
	}
	if _, ok := c.get(2); ok || len(c.entries) >= n || c.order.Len() != len(c.entries) {
		t.Errorf("%d entries, %d in order; the oldest is there: %v", len(c.entries), c.order.Len(), ok)
	}
	size := 0
	for e := c.order.Front(); e != nil; e = e.Next() {
		size += len(e.Value.(*cachedHeader).header) + headerOverhead
	}
	if size != c.size || size > maxHeaderCache || size < maxHeaderCache*9/10 {
		t.Errorf("the headers have %d bytes, the cache counts %d", size, c.size)
	}
	if got, ok := c.get(n); !ok || !bytes.Equal(got, header(n)) {
		t.Error("the newest header is not there")
	}
	c.put(n+1, make([]byte, maxCachedHeader+1))
	c.put(0, header(0))
	for _, id := range []mailbox.ContentID{n + 1, 0} {
		if _, ok := c.get(id); ok {
			t.Errorf("content %d is cached", id)
		}
	}
}
