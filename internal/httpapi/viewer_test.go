package httpapi

import (
	"bytes"
	"compress/gzip"
	"io"
	"regexp"
	"strings"
	"testing"
)

func TestTheViewerNeedsNothingFromElsewhere(t *testing.T) {
	a := newWorld().api()
	page := ask(t, a, "GET", "/docs", "", "Authorization", "")
	if page.Code != 200 || !strings.HasPrefix(page.Header().Get("Content-Type"), "text/html") {
		t.Fatalf("%d %v", page.Code, page.Header())
	}
	loads := regexp.MustCompile(`(?:src|href)="([^"]+)"`).FindAllStringSubmatch(page.Body.String(), -1)
	if len(loads) < 4 {
		t.Errorf("the page loads only %v", loads)
	}
	for _, load := range loads {
		if !strings.HasPrefix(load[1], "/") {
			t.Errorf("the page loads %s", load[1])
		}
		part := ask(t, a, "GET", load[1], "", "Authorization", "")
		if part.Code != 200 || part.Body.Len() < 100 {
			t.Errorf("%s: %d, %d bytes", load[1], part.Code, part.Body.Len())
		}
		if load[1] != "/openapi.json" && !strings.HasPrefix(part.Header().Get("Content-Security-Policy"), "default-src 'self';") {
			t.Errorf("%s: policy %q", load[1], part.Header().Get("Content-Security-Policy"))
		}
	}
}

func TestTheViewerIsSentPackedToWhoCanUnpackIt(t *testing.T) {
	a := newWorld().api()
	const path = "/docs/swagger-ui-bundle.js"
	plain := ask(t, a, "GET", path, "")
	packed := ask(t, a, "GET", path, "", "Accept-Encoding", "br, gzip")
	if packed.Header().Get("Content-Encoding") != "gzip" || plain.Header().Get("Content-Encoding") != "" || packed.Body.Len() > plain.Body.Len()/2 {
		t.Errorf("%d packed, %d plain: %v", packed.Body.Len(), plain.Body.Len(), packed.Header())
	}
	unpacked, err := gzip.NewReader(packed.Body)
	if err != nil {
		t.Fatal(err)
	}
	if text, err := io.ReadAll(unpacked); err != nil || !bytes.Equal(text, plain.Body.Bytes()) {
		t.Errorf("what is packed is another: %d bytes, %v", len(text), err)
	}
}
