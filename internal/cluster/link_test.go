package cluster

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// accepting is a leader that accepts links of a protocol and echoes what it receives on them.
func accepting(t *testing.T, protocol, key string) (url string) {
	t.Helper()
	server := httptest.NewServer(keyOf(t, key).Links(map[string]Attach{protocol: func(conn net.Conn, name, version string) {
		defer conn.Close()
		io.WriteString(conn, name+" "+version+" ")
		io.Copy(conn, conn)
	}}, http.NotFoundHandler()))
	t.Cleanup(server.Close)
	return server.URL
}

func TestALinkIsOpenedWithTheSameKey(t *testing.T) {
	conn, err := OpenLink(t.Context(), accepting(t, "test/1", "one cluster key"), &LinkOptions{Name: "two", Version: "v1", Protocol: "test/1", Key: keyOf(t, "one cluster key")})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	io.WriteString(conn, "hello")
	const want = "two v1 hello"
	got := make([]byte, len(want))
	if _, err := io.ReadFull(conn, got); err != nil || string(got) != want {
		t.Errorf("received %q, %v", got, err)
	}
}

// The error of a link that is refused says why, and is the same for each attempt, so that it is logged once.
func TestALinkThatIsRefusedSaysWhy(t *testing.T) {
	for name, c := range map[string]struct{ protocol, key, want string }{
		"another protocol": {"test/2", "one cluster key", "the leading node refused the link: this node does not support the link protocol \"test/1\" (upgrade"},
		"another key":      {"test/1", "another cluster key", "the leading node did not prove that it has the cluster key"},
	} {
		t.Run(name, func(t *testing.T) {
			url, last := accepting(t, c.protocol, c.key), ""
			for range 2 {
				_, err := OpenLink(t.Context(), url, &LinkOptions{Name: "two", Version: "v1", Protocol: "test/1", Key: keyOf(t, "one cluster key")})
				if err == nil || !strings.HasPrefix(err.Error(), c.want) || last != "" && err.Error() != last {
					t.Fatalf("%v, after %q", err, last)
				}
				last = err.Error()
			}
		})
	}
	refused := newStandby(t)
	if _, err := OpenLink(t.Context(), refused.url, &LinkOptions{Name: "two", Protocol: "test/1", Key: refused.key}); err == nil || !strings.Contains(err.Error(), "this node does not lead (try again") {
		t.Errorf("a node that does not lead: %v", err)
	}
}
