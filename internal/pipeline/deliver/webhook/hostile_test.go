package webhook

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"fanfare.dev/fanfare/internal/pipeline/deliver/delivertest"
	"fanfare.dev/fanfare/internal/pipeline/deliver/driver"
)

// A test waits for silence as long as sendTimeout.
const sendTimeout = 4 * time.Second

// testTimeout is far longer than all timeouts of these tests together.
const testTimeout = 5 * time.Minute

// one sends one message and returns its outcome.
func one(t *testing.T, d *Driver, message *driver.Message) driver.Outcome {
	t.Helper()
	queue := delivertest.NewQueue(message)
	over := make(chan error, 1)
	go func() { over <- d.Serve(t.Context(), queue.Connection()) }()
	select {
	case err := <-over:
		if err != nil {
			t.Errorf("Serve ended: %v", err)
		}
	case <-time.After(testTimeout):
		t.Fatalf("the connection is held after %v", testTimeout)
	}
	queue.Check(t)
	outcome, ok := queue.Outcomes()[message.Delivery]
	if !ok {
		t.Fatal("there is no outcome")
	}
	return outcome
}

// hostile starts a server that calls do for each connection, and returns its address.
func hostile(t *testing.T, security *tls.Config, do func(net.Conn)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			t.Cleanup(func() { _ = c.Close() })
			go func() {
				if security != nil {
					c = tls.Server(c, security)
				}
				do(c)
			}()
		}
	}()
	return l.Addr().String()
}

// request reads a request.
func request(c net.Conn) {
	r, err := http.ReadRequest(bufio.NewReader(c))
	if err == nil {
		_, _ = io.Copy(io.Discard, r.Body)
	}
}

// forever sends a text repeatedly until the connection is closed.
func forever(c net.Conn, text string) {
	block := []byte(strings.Repeat(text, 1+4096/len(text)))
	for {
		if _, err := c.Write(block); err != nil {
			return
		}
	}
}

// drip sends a text repeatedly, a byte at a time.
func drip(c net.Conn, text string) {
	beat := time.NewTicker(2 * time.Millisecond)
	defer beat.Stop()
	for i := 0; ; i++ {
		if _, err := c.Write([]byte{text[i%len(text)]}); err != nil {
			return
		}
		<-beat.C
	}
}

const chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"

func TestNoReceiverHoldsAConnectionPastTheTimeout(t *testing.T) {
	silence := make(chan struct{})
	defer close(silence)
	hangs := func(net.Conn) { <-silence }
	answers := func(head string, then func(net.Conn)) func(net.Conn) {
		return func(c net.Conn) {
			request(c)
			_, _ = io.WriteString(c, head)
			then(c)
		}
	}
	for name, test := range map[string]struct {
		tls  bool
		do   func(net.Conn)
		want driver.Verdict
	}{
		"takes the connection and says nothing":  {false, hangs, driver.Lost},
		"never ends the handshake":               {true, nil, driver.Temporary},
		"answers the handshake with plain text":  {true, func(c net.Conn) { forever(c, "HTTP/1.1 200 OK\r\n") }, driver.Temporary},
		"hangs up at once":                       {false, func(c net.Conn) { _ = c.Close() }, driver.Lost},
		"drips the header":                       {false, answers("HTTP/1.1 200 OK\r\n", func(c net.Conn) { drip(c, "X-Slow: loris\r\n") }), driver.Lost},
		"never ends the header":                  {false, answers("HTTP/1.1 200 OK\r\n", func(c net.Conn) { forever(c, "X-More: and more\r\n") }), driver.Lost},
		"never ends a line of the header":        {false, answers("HTTP/1.1 200 OK\r\nX-Long: ", func(c net.Conn) { forever(c, "more") }), driver.Lost},
		"says forever that it is about to":       {false, answers("", func(c net.Conn) { forever(c, "HTTP/1.1 103 Early Hints\r\n\r\n") }), driver.Lost},
		"never ends the body":                    {false, answers("HTTP/1.1 200 OK\r\n\r\n", func(c net.Conn) { forever(c, "more") }), driver.Accepted},
		"drips the body":                         {false, answers(chunked, func(c net.Conn) { drip(c, "1\r\n.\r\n") }), driver.Accepted},
		"drips the body of a refusal":            {false, answers("HTTP/1.1 404 No\r\n\r\n", func(c net.Conn) { drip(c, "no ") }), driver.Permanent},
		"names a chunk of a great many bytes":    {false, answers(chunked+"7fffffffffffffff\r\n", func(c net.Conn) { forever(c, "more") }), driver.Accepted},
		"never ends the extensions of a chunk":   {false, answers(chunked+"1;", func(c net.Conn) { forever(c, "ext=1;") }), driver.Accepted},
		"never ends the trailer":                 {false, answers(chunked+"0\r\n", func(c net.Conn) { forever(c, "X-More: and more\r\n") }), driver.Accepted},
		"says two lengths":                       {false, answers("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", hangs), driver.Lost},
		"says a length and sends less":           {false, answers("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n", hangs), driver.Accepted},
		"speaks another protocol":                {false, func(c net.Conn) { forever(c, "220 mail.example.org ESMTP\r\n") }, driver.Lost},
		"switches to another protocol":           {false, answers("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n", hangs), driver.Permanent},
		"does not read":                          {false, hangs, driver.Lost},
		"answers before the request and goes on": {false, func(c net.Conn) { forever(c, "HTTP/1.1 204 No Content\r\n\r\n") }, driver.Lost},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			good := startReceiver(t, "https")
			do, scheme := test.do, "http://"
			var security *tls.Config
			if test.tls {
				scheme = "https://"
			}
			if do == nil {
				do = hangs
			}
			address := hostile(t, security, do)
			config := good.config()
			config.SendTimeout = sendTimeout
			if test.tls {
				config.TLSTimeout = 10 * time.Second
			}
			drv := New(config)
			text := "hello"
			if name == "does not read" {
				text = strings.Repeat("hello", 4<<20)
			}
			message := good.message("/", text)
			message.To = scheme + address + "/"
			got := one(t, drv, message)
			racy := name == "answers before the request and goes on" && got.Verdict == driver.Accepted || name == "hangs up at once" && got.Verdict == driver.Temporary
			if got.Verdict != test.want && !racy {
				t.Errorf("got %+v, want verdict %d", got, test.want)
			}
			if got := one(t, drv, good.message("/", "hello")); got.Verdict != driver.Accepted {
				t.Errorf("a good receiver afterwards: %+v", got)
			}
		})
	}
}

func TestNoHTTP2ReceiverHoldsAConnectionPastTheTimeout(t *testing.T) {
	header := func(fields ...string) []byte {
		var b bytes.Buffer
		e := hpack.NewEncoder(&b)
		for i := 0; i < len(fields); i += 2 {
			if err := e.WriteField(hpack.HeaderField{Name: fields[i], Value: fields[i+1]}); err != nil {
				t.Fatal(err)
			}
		}
		return b.Bytes()
	}
	// until sends frames until the connection is closed.
	until := func(send func(i int) error) {
		for i := 0; send(i) == nil; i++ {
			continue
		}
	}
	for name, test := range map[string]struct {
		do    func(f *http2.Framer, stream uint32)
		taken bool // or refused before anything was sent
	}{
		"says nothing": {func(*http2.Framer, uint32) {}, false},
		"pings": {func(f *http2.Framer, _ uint32) {
			until(func(i int) error { return f.WritePing(false, [8]byte{byte(i)}) })
		}, false},
		"changes its settings": {func(f *http2.Framer, _ uint32) {
			until(func(i int) error {
				return f.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: uint32(i % 1000)})
			})
		}, false},
		"never ends the header": {func(f *http2.Framer, stream uint32) {
			_ = f.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: header(":status", "200")})
			until(func(int) error {
				return f.WriteContinuation(stream, false, header("x-more", strings.Repeat("x", 4096)))
			})
		}, false},
		"never ends the body": {func(f *http2.Framer, stream uint32) {
			_ = f.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: header(":status", "200"), EndHeaders: true})
			until(func(int) error { return f.WriteData(stream, false, make([]byte, 1024)) })
		}, true},
		"sends empty parts of the body": {func(f *http2.Framer, stream uint32) {
			_ = f.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: header(":status", "200"), EndHeaders: true})
			until(func(int) error { return f.WriteData(stream, false, nil) })
		}, true},
		"says forever that it is about to": {func(f *http2.Framer, stream uint32) {
			until(func(int) error {
				return f.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: header(":status", "103"), EndHeaders: true})
			})
		}, false},
		"resets and takes again": {func(f *http2.Framer, stream uint32) {
			until(func(int) error { return f.WriteRSTStream(stream, http2.ErrCodeRefusedStream) })
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			good := startReceiver(t, "h2")
			security := good.TLS.Clone()
			security.NextProtos = []string{"h2"}
			address := hostile(t, security, func(c net.Conn) {
				preface := make([]byte, len(http2.ClientPreface))
				if _, err := io.ReadFull(c, preface); err != nil {
					return
				}
				f := http2.NewFramer(c, c)
				if err := f.WriteSettings(); err != nil {
					return
				}
				for {
					frame, err := f.ReadFrame()
					if err != nil {
						return
					}
					if _, ok := frame.(*http2.DataFrame); ok {
						go func() { _, _ = io.Copy(io.Discard, c) }()
						test.do(f, frame.Header().StreamID)
						return
					}
				}
			})
			config := good.config()
			config.SendTimeout = sendTimeout
			drv := New(config)
			message := good.message("/", "hello")
			message.To = "https://" + address + "/"
			got := one(t, drv, message)
			if taken := got.Verdict == driver.Accepted; taken != test.taken || !taken && got.Verdict != driver.Lost {
				t.Errorf("got %+v, want taken %v, or else lost", got, test.taken)
			}
			if got := one(t, drv, good.message("/", "hello")); got.Verdict != driver.Accepted {
				t.Errorf("a good receiver afterwards: %+v", got)
			}
		})
	}
}

func TestRedirectIsNotFollowed(t *testing.T) {
	inside, r := startReceiver(t, "http"), startReceiver(t, "https")
	for _, status := range []int{301, 302, 303, 307, 308} {
		r.handle(func(w http.ResponseWriter, req *http.Request) { http.Redirect(w, req, inside.URL+"/admin", status) })
		got := one(t, New(r.config()), r.message("/", "hello"))
		if got.Verdict != driver.Permanent || got.Code != status || !strings.Contains(got.Text, inside.URL) {
			t.Errorf("%d: %+v, want it permanent with where it leads to", status, got)
		}
	}
	if len(inside.protos) > 0 {
		t.Error("the redirect was followed")
	}
}

func TestStatusDeterminesTheVerdict(t *testing.T) {
	r := startReceiver(t, "https")
	drv := New(r.config())
	for _, test := range []struct {
		status  int
		verdict driver.Verdict
	}{
		{200, driver.Accepted}, {201, driver.Accepted}, {202, driver.Accepted}, {204, driver.Accepted}, {299, driver.Accepted},
		{300, driver.Permanent}, {304, driver.Permanent},
		{400, driver.Permanent}, {401, driver.Permanent}, {404, driver.Permanent}, {410, driver.Permanent}, {413, driver.Permanent},
		{408, driver.Temporary}, {425, driver.Temporary}, {429, driver.Temporary},
		{500, driver.Temporary}, {501, driver.Temporary}, {502, driver.Temporary}, {503, driver.Temporary}, {504, driver.Temporary}, {599, driver.Temporary},
		{600, driver.Permanent}, {999, driver.Permanent},
	} {
		r.handle(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "120")
			w.WriteHeader(test.status)
			if test.status >= 400 {
				_, _ = fmt.Fprint(w, "\x1b[31mwhy\r\nnot")
			}
		})
		got := one(t, drv, r.message("/", "hello"))
		if got.Verdict != test.verdict || got.Code != test.status {
			t.Errorf("%d: %+v, want verdict %d", test.status, got, test.verdict)
		}
		if asked := got.RetryAfter == 2*time.Minute; asked != (got.Verdict != driver.Accepted) {
			t.Errorf("%d: asks for %v", test.status, got.RetryAfter)
		}
		if test.status >= 400 && !strings.HasSuffix(got.Text, "why  not") || strings.ContainsAny(got.Text, "\x1b\r\n") {
			t.Errorf("%d: the text is %q", test.status, got.Text)
		}
	}
}
