package cluster

import (
	"bufio"
	"bytes"
	"fmt"
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
		"another protocol": {"test/2", "one cluster key", "the node refused the link: this node does not support the link protocol \"test/1\" (upgrade"},
		"another key":      {"test/1", "another cluster key", "the node refused the link: the request for a link does not prove that its sender has the cluster key (check"},
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
	if _, err := OpenLink(t.Context(), refused.url, &LinkOptions{Name: "two", Protocol: "test/1", Key: refused.key}); err == nil || !strings.Contains(err.Error(), "this node does not lead (the connecting node looks up") {
		t.Errorf("a node that does not lead: %v", err)
	}
}

// A client that has only recorded the request of a node is refused, although the leader has proved itself to it. A client
// without the cluster key does not get that far, so any number of them can wait without keeping nodes from opening links.
func TestALeaderRefusesAClientWithoutTheKey(t *testing.T) {
	key := keyOf(t, "one cluster key")
	attached := make(chan struct{}, 1)
	server := httptest.NewServer(key.Links(map[string]Attach{"test/1": func(conn net.Conn, _, _ string) {
		attached <- struct{}{}
		conn.Close()
	}}, http.NotFoundHandler()))
	t.Cleanup(server.Close)
	open := func(proof string) net.Conn {
		t.Helper()
		conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", server.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		io.WriteString(conn, "GET "+LinkPath+" HTTP/1.1\r\nHost: leader\r\nConnection: Upgrade\r\nUpgrade: test/1\r\nFanfare-Node: two\r\nFanfare-Nonce: "+strings.Repeat("ab", nonceSize)+"\r\n"+proof+"\r\n")
		return conn
	}
	for range maxHandshakes + 1 {
		for _, proof := range []string{"", "Fanfare-Proof: " + strings.Repeat("cd", 32) + "\r\n"} {
			status, err := bufio.NewReader(open(proof)).ReadString('\n')
			if err != nil || !strings.HasPrefix(status, "HTTP/1.1 401 ") {
				t.Fatalf("%q, %v", status, err)
			}
		}
	}
	recorded := open(fmt.Sprintf("Fanfare-Proof: %x\r\n", key.proof("request", bytes.Repeat([]byte{0xab}, nonceSize), "two")))
	io.WriteString(recorded, strings.Repeat("x", 32))
	text, err := io.ReadAll(recorded)
	if err != nil || !strings.HasPrefix(string(text), "HTTP/1.1 101 ") {
		t.Errorf("%q, %v", text, err)
	}
	select {
	case <-attached:
		t.Error("the client is attached")
	default:
	}
}
