package jmap_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"

	"fanfare.dev/fanfare/internal/clock"
	"fanfare.dev/fanfare/internal/jmap"
	"fanfare.dev/fanfare/internal/jmap/token"
	"fanfare.dev/fanfare/internal/mail/linktoken"
	"fanfare.dev/fanfare/internal/mailbox"
	"fanfare.dev/fanfare/internal/mailbox/apppassword"
	"fanfare.dev/fanfare/internal/store"
	"fanfare.dev/fanfare/internal/store/storetest"
)

const (
	address = "ann@example.org"
	page    = "https://app.example.org"
)

// A testClock stands still until it is set.
type testClock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *testClock) Now() time.Time { c.mu.Lock(); defer c.mu.Unlock(); return c.now }

func (c *testClock) advance(d time.Duration) { c.mu.Lock(); defer c.mu.Unlock(); c.now = c.now.Add(d) }

// A world is a server with an account in a real store.
type world struct {
	*testing.T
	db       store.Database
	store    *mailbox.Store
	clock    *testClock
	server   *jmap.Server
	keys     *token.Key
	url      string
	password string
	id       mailbox.AccountID
	released chan struct{}
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{T: t, clock: &testClock{now: time.Now().Truncate(time.Second)}, id: 7, password: apppassword.Generate(), released: make(chan struct{}, 100)}
	log := slog.New(slog.DiscardHandler)
	w.db = storetest.OpenAt(t, t.TempDir())
	w.store = mailbox.New(w.db, mailbox.Options{Clock: w.clock, Logger: log})
	t.Cleanup(w.store.Close)
	if _, err := w.store.Create(t.Context(), mailbox.Owner{ID: w.id, Service: "press", Address: address}); err != nil {
		t.Fatal(err)
	}
	verifier, err := apppassword.Verifier(address, w.password, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.store.AddCredential(t.Context(), w.id, &mailbox.Credential{Name: "test", Verifier: verifier}); err != nil {
		t.Fatal(err)
	}
	seals, err := linktoken.New(bytes.Repeat([]byte{1}, 32))
	if err != nil {
		t.Fatal(err)
	}
	w.keys = token.New(seals)
	w.server = jmap.New(jmap.Options{
		Store: w.store, Logins: apppassword.NewChecker(w.store, w.clock, log), Tokens: w.keys, MaxUploadBytes: 1000, Clock: clock.Clock(w.clock), Logger: log,
		ClientAddress: func(*http.Request) netip.Addr { return netip.MustParseAddr("192.0.2.1") }, PingInterval: time.Second,
	})
	front := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		w.server.Serve(rw, r, func() { w.released <- struct{}{} })
	}))
	t.Cleanup(func() { w.server.Stop(); front.Close() })
	w.url = front.URL
	return w
}

// token returns a Bearer token for the page.
func (w *world) token() string {
	w.Helper()
	text, err := w.keys.Mint(token.Claims{Account: w.id, Service: "press", Origins: []string{page}, Until: w.clock.Now().Add(time.Hour)}, w.clock.Now())
	if err != nil {
		w.Fatal(err)
	}
	return text
}

// send sends a request as the owner of the app password, unless edit changes it.
func (w *world) send(method, path, body string, edit func(*http.Request)) (*http.Response, string) {
	w.Helper()
	r, err := http.NewRequestWithContext(w.Context(), method, w.url+path, strings.NewReader(body))
	if err != nil {
		w.Fatal(err)
	}
	r.SetBasicAuth(address, w.password)
	r.Header.Set("Content-Type", "application/json")
	if edit != nil {
		edit(r)
	}
	client := &http.Client{Timeout: 20 * time.Second, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	response, err := client.Do(r)
	if err != nil {
		w.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		w.Fatal(err)
	}
	return response, string(text)
}

// deliver stores a message in the inbox.
func (w *world) deliver() {
	w.Helper()
	content := []byte("Subject: hello\r\n\r\nbody\r\n")
	if _, err := w.store.Append(context.Background(), w.id, []mailbox.NewMessage{{Mailbox: mailbox.InboxID, Content: content}}); err != nil {
		w.Fatal(err)
	}
}

func TestRFC8620Section2TheSessionIsFoundAndDescribesTheServer(t *testing.T) {
	w := newWorld(t)
	response, _ := w.send("GET", "/.well-known/jmap", "", func(r *http.Request) { r.Header.Del("Authorization") })
	if response.StatusCode != 307 || response.Header.Get("Location") != "/jmap/session" {
		t.Errorf("discovery: %d, %q", response.StatusCode, response.Header.Get("Location"))
	}
	response, text := w.send("GET", "/jmap/session", "", nil)
	if response.StatusCode != 200 || response.Header.Get("Content-Type") != "application/json" || !strings.Contains(response.Header.Get("Cache-Control"), "no-store") {
		t.Errorf("session: %d, %v", response.StatusCode, response.Header)
	}
	var session struct {
		Capabilities map[string]map[string]any
		Accounts     map[string]struct {
			Name                   string
			IsPersonal, IsReadOnly bool
			AccountCapabilities    map[string]map[string]any
		}
		PrimaryAccounts                                                 map[string]string
		Username, APIURL, DownloadURL, UploadURL, EventSourceURL, State string
	}
	if err := json.Unmarshal([]byte(text), &session); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	of := session.Capabilities["urn:ietf:params:jmap:core"]
	for _, limit := range []string{"maxSizeUpload", "maxConcurrentUpload", "maxSizeRequest", "maxConcurrentRequests", "maxCallsInRequest", "maxObjectsInGet", "maxObjectsInSet"} {
		if n, ok := of[limit].(float64); !ok || n < 1 {
			t.Errorf("%s is %v", limit, of[limit])
		}
	}
	if session.Username != address || session.APIURL != w.url+"/jmap/api" || session.State == "" || session.PrimaryAccounts["urn:ietf:params:jmap:mail"] != "a7" || session.Accounts["a7"].Name != address || !session.Accounts["a7"].IsPersonal {
		t.Errorf("session %s", text)
	}
	if most := session.Accounts["a7"].AccountCapabilities["urn:ietf:params:jmap:mail"]["maxMailboxesPerEmail"]; most != 1.0 {
		t.Errorf("maxMailboxesPerEmail is %v", most)
	}
	for name, want := range map[string][]string{session.DownloadURL: {"{accountId}", "{blobId}", "{type}", "{name}"}, session.UploadURL: {"{accountId}"}, session.EventSourceURL: {"{types}", "{closeafter}", "{ping}"}} {
		for _, variable := range want {
			if !strings.Contains(name, variable) {
				t.Errorf("%s has no %s", name, variable)
			}
		}
	}
}

func TestRequestsWithoutALoginAreRefused(t *testing.T) {
	w := newWorld(t)
	for name, header := range map[string]string{"none": "", "wrong password": "Basic YW5uQGV4YW1wbGUub3JnOnh4eHg=", "broken": "Basic !", "wrong token": "Bearer x", "API key": "Bearer ffk_abc", "other": "Digest x"} {
		for _, path := range []string{"/jmap/session", "/jmap/api", "/jmap/upload/a7/", "/jmap/download/a7/E1/x", "/jmap/eventsource?types=*", "/jmap/ws"} {
			method := "GET"
			if path == "/jmap/api" || path == "/jmap/upload/a7/" {
				method = "POST"
			}
			response, text := w.send(method, path, `{"using":[],"methodCalls":[]}`, func(r *http.Request) {
				r.Header.Del("Authorization")
				if header != "" {
					r.Header.Set("Authorization", header)
				}
			})
			if response.StatusCode != 401 && response.StatusCode != 429 || response.StatusCode == 401 && response.Header.Get("WWW-Authenticate") == "" {
				t.Errorf("%s, %s: %d %s", name, path, response.StatusCode, text)
			}
		}
	}
}

func TestTokensAreBoundToOriginsAndEnd(t *testing.T) {
	w := newWorld(t)
	text := w.token()
	ask := func(origin string) *http.Response {
		response, _ := w.send("GET", "/jmap/session", "", func(r *http.Request) {
			r.Header.Set("Authorization", "Bearer "+text)
			if origin != "" {
				r.Header.Set("Origin", origin)
			}
		})
		return response
	}
	for origin, status := range map[string]int{"": 200, page: 200, "https://evil.example.org": 403, "null": 403} {
		response := ask(origin)
		shared := response.Header.Get("Access-Control-Allow-Origin")
		if response.StatusCode != status || (shared != "") != (origin == page) || origin == page && shared != page || response.Header.Get("Access-Control-Allow-Credentials") != "" {
			t.Errorf("origin %q: %d, %v", origin, response.StatusCode, response.Header)
		}
	}
	w.clock.advance(2 * time.Hour)
	if response := ask(page); response.StatusCode != 401 || response.Header.Get("Access-Control-Allow-Origin") != page {
		t.Errorf("expired: %d, %v; the page must be able to read that", response.StatusCode, response.Header)
	}
	text = w.token()
	if err := w.store.SetDisabled(t.Context(), w.id, true); err != nil {
		t.Fatal(err)
	}
	if response := ask(page); response.StatusCode != 401 {
		t.Errorf("disabled: %d", response.StatusCode)
	}
	response, _ := w.send("GET", "/jmap/session", "", nil)
	if response.StatusCode != 403 {
		t.Errorf("disabled, with the app password: %d", response.StatusCode)
	}
}

func TestAppPasswordsAreNotAcceptedFromOtherPages(t *testing.T) {
	w := newWorld(t)
	response, _ := w.send("GET", "/jmap/session", "", func(r *http.Request) { r.Header.Set("Origin", page) })
	if response.StatusCode != 403 || response.Header.Get("Access-Control-Allow-Origin") != "" {
		t.Errorf("%d, %v", response.StatusCode, response.Header)
	}
	response, _ = w.send("OPTIONS", "/jmap/api", "", func(r *http.Request) {
		r.Header.Set("Origin", page)
		r.Header.Set("Access-Control-Request-Method", "POST")
		r.Header.Del("Authorization")
	})
	if response.StatusCode != 204 || !strings.Contains(response.Header.Get("Access-Control-Allow-Headers"), "Authorization") || response.Header.Get("Access-Control-Allow-Credentials") != "" {
		t.Errorf("preflight: %d, %v", response.StatusCode, response.Header)
	}
}

func TestARevokedAppPasswordEndsAtOnce(t *testing.T) {
	for name, store := range map[string]func(w *world) *mailbox.Store{
		"by this server": func(w *world) *mailbox.Store { return w.store },
		"by another store of the database, without news of it": func(w *world) *mailbox.Store {
			other := mailbox.New(w.db, mailbox.Options{Clock: w.clock, Logger: slog.New(slog.DiscardHandler)})
			w.Cleanup(other.Close)
			return other
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.send("GET", "/jmap/session", "", nil)
			all, err := w.store.Credentials(t.Context(), w.id)
			if err != nil {
				t.Fatal(err)
			}
			w.clock.advance(5 * time.Minute)
			if response, _ := w.send("GET", "/jmap/session", "", nil); response.StatusCode != 200 {
				t.Errorf("before: status %d", response.StatusCode)
			}
			if err := store(w).RemoveCredential(t.Context(), w.id, all[0].ID); err != nil {
				t.Fatal(err)
			}
			if response, _ := w.send("GET", "/jmap/session", "", nil); response.StatusCode != 401 {
				t.Errorf("status %d", response.StatusCode)
			}
		})
	}
}

const echo = `{"using":["urn:ietf:params:jmap:core"],"methodCalls":[["Core/echo",{"a":1},"c"]]}`

func TestRFC8620Section3CallsAreMadeByPOST(t *testing.T) {
	w := newWorld(t)
	response, text := w.send("POST", "/jmap/api", echo, nil)
	if response.StatusCode != 200 || !strings.HasPrefix(text, `{"methodResponses":[["Core/echo",{"a":1},"c"]],"sessionState":"`) {
		t.Errorf("%d %s", response.StatusCode, text)
	}
	for name, c := range map[string]struct {
		method, path, body, kind string
		status                   int
		want                     string
	}{
		"not JSON":   {"POST", "/jmap/api", `{`, "application/json", 400, "error:notJSON"},
		"wrong type": {"POST", "/jmap/api", echo, "text/plain", 400, "error:notJSON"},
		"no request": {"POST", "/jmap/api", `{}`, "application/json; charset=utf-8", 400, "error:notRequest"},
		"capability": {"POST", "/jmap/api", `{"using":["x"],"methodCalls":[]}`, "application/json", 400, "error:unknownCapability"},
		"too large":  {"POST", "/jmap/api", strings.Repeat(" ", 10<<20+1), "application/json", 413, `"limit":"maxSizeRequest"`},
		"many calls": {"POST", "/jmap/api", `{"using":[],"methodCalls":[` + strings.TrimSuffix(strings.Repeat(`["Core/echo",{},"c"],`, 33), ",") + `]}`, "application/json", 400, `"limit":"maxCallsInRequest"`},
		"method":     {"GET", "/jmap/api", ``, "application/json", 405, "method_not_allowed"},
		"other path": {"GET", "/jmap/x", ``, "application/json", 404, "not_found"},
		"large":      {"POST", "/jmap/upload/a7/", strings.Repeat("x", 1001), "text/plain", 413, `"limit":"maxSizeUpload"`},
		"other":      {"POST", "/jmap/upload/a8/", "x", "text/plain", 404, "not_found"},
		"no blob":    {"GET", "/jmap/download/a7/E1/x", "", "", 404, "not_found"},
		"other blob": {"GET", "/jmap/download/a8/E1/x", "", "", 404, "not_found"},
		"no name":    {"GET", "/jmap/download/a7/E1", "", "", 404, "not_found"},
		"bad type":   {"GET", "/jmap/download/a7/E1/x?accept=a%0Ab", "", "", 422, "accept"},
		"no types":   {"GET", "/jmap/eventsource", "", "", 422, "types"},
		"closeafter": {"GET", "/jmap/eventsource?types=*&closeafter=x", "", "", 422, "closeafter"},
		"ping":       {"GET", "/jmap/eventsource?types=*&ping=x", "", "", 422, "ping"},
		"no upgrade": {"GET", "/jmap/ws", "", "", 426, "upgrade_required"},
	} {
		response, text := w.send(c.method, c.path, c.body, func(r *http.Request) { r.Header.Set("Content-Type", c.kind) })
		if response.StatusCode != c.status || !strings.Contains(text, c.want) || response.Header.Get("Content-Type") != "application/problem+json" {
			t.Errorf("%s: %d %s", name, response.StatusCode, text)
		}
	}
}

func TestRFC8620Section2LimitsOfConcurrencyAreEnforced(t *testing.T) {
	w := newWorld(t)
	for _, c := range []struct {
		path, limit string
		most        int
	}{{"/jmap/api", "maxConcurrentRequests", 8}, {"/jmap/upload/a7/", "maxConcurrentUpload", 4}} {
		end := make(chan struct{})
		var done sync.WaitGroup
		for range c.most { // bodies that do not end
			done.Go(func() {
				for status := 429; status == 429; { // another request was in the way
					read, write := io.Pipe()
					stop := context.AfterFunc(t.Context(), func() { write.Close() })
					go func() { <-end; write.Close() }()
					r, _ := http.NewRequestWithContext(t.Context(), "POST", w.url+c.path, read)
					r.SetBasicAuth(address, w.password)
					r.Header.Set("Content-Type", "application/json")
					fresh := &http.Transport{DisableKeepAlives: true} // a body that was begun cannot be sent again on another connection
					response, err := fresh.RoundTrip(r)
					stop()
					if err != nil {
						return
					}
					response.Body.Close()
					status = response.StatusCode
				}
			})
		}
		var text string
		for deadline := time.Now().Add(20 * time.Second); !strings.Contains(text, c.limit); {
			var response *http.Response
			if response, text = w.send("POST", c.path, echo, nil); time.Now().After(deadline) {
				t.Fatalf("%s: %d %s", c.path, response.StatusCode, text)
			}
		}
		close(end)
		done.Wait()
		if response, text := w.send("POST", c.path, echo, nil); response.StatusCode/100 != 2 {
			t.Errorf("%s afterwards: %d %s", c.path, response.StatusCode, text)
		}
	}
}

func TestRFC8620Section6UploadsAreStoredAndDownloaded(t *testing.T) {
	w := newWorld(t)
	data := "\x00\x01<script>"
	response, text := w.send("POST", "/jmap/upload/a7/", data, func(r *http.Request) { r.Header.Set("Content-Type", "image/png") })
	var made struct {
		AccountID, BlobID, Type string
		Size                    int
	}
	if err := json.Unmarshal([]byte(text), &made); err != nil || response.StatusCode != 201 || made.AccountID != "a7" || made.Type != "image/png" || made.Size != len(data) {
		t.Fatalf("%d %s", response.StatusCode, text)
	}
	response, text = w.send("GET", "/jmap/download/a7/"+made.BlobID+"/b%C3%A4r%2F.html?accept=text/html", "", nil)
	h := response.Header
	if response.StatusCode != 200 || text != data || h.Get("Content-Type") != "text/html" || h.Get("X-Content-Type-Options") != "nosniff" || !strings.Contains(h.Get("Content-Security-Policy"), "sandbox") {
		t.Errorf("%d %q %v", response.StatusCode, text, h)
	}
	if h.Get("Content-Disposition") != "attachment; filename*=utf-8''b%C3%A4r%2F.html" || !strings.Contains(h.Get("Cache-Control"), "private") {
		t.Errorf("header %v", h)
	}
	if response, _ := w.send("HEAD", "/jmap/download/a7/"+made.BlobID+"/x", "", nil); response.StatusCode != 200 || response.ContentLength != int64(len(data)) {
		t.Errorf("HEAD: %d, %d bytes", response.StatusCode, response.ContentLength)
	}
}

// events opens an event stream and returns its lines.
func (w *world) events(parameters, last string) (lines <-chan string, cancel func()) {
	w.Helper()
	ctx, cancel := context.WithCancel(w.Context())
	w.Cleanup(cancel)
	r, err := http.NewRequestWithContext(ctx, "GET", w.url+"/jmap/eventsource?"+parameters, nil)
	if err != nil {
		w.Fatal(err)
	}
	r.SetBasicAuth(address, w.password)
	if last != "" {
		r.Header.Set("Last-Event-ID", last)
	}
	response, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		w.Fatal(err)
	}
	if response.StatusCode != 200 || response.Header.Get("Content-Type") != "text/event-stream" {
		w.Fatalf("event stream: %d %v", response.StatusCode, response.Header)
	}
	all := make(chan string, 100)
	go func() {
		defer close(all)
		defer response.Body.Close()
		for s := bufio.NewScanner(response.Body); s.Scan(); {
			if s.Text() != "" {
				all <- s.Text()
			}
		}
	}()
	return all, cancel
}

// next returns the next line, or "" at the end.
func (w *world) next(lines <-chan string) string {
	w.Helper()
	select {
	case line := <-lines:
		return line
	case <-time.After(20 * time.Second):
		w.Fatal("no event came")
		return ""
	}
}

// state returns the state of the account.
func (w *world) state() string {
	w.Helper()
	of, err := w.store.Account(context.Background(), w.id)
	if err != nil {
		w.Fatal(err)
	}
	return fmt.Sprint(of.State)
}

func TestRFC8620Section73ChangesComeByEventStream(t *testing.T) {
	w := newWorld(t)
	before := w.state()
	lines, cancel := w.events("types=*&closeafter=no&ping=0", "")
	w.deliver()
	now := w.state()
	for _, want := range []string{"event: state", "id: " + now, `data: {"@type":"StateChange","changed":{"a7":{"Email":"` + now + `","EmailDelivery":"` + now + `","Mailbox":"` + now + `","Quota":"` + now + `","Thread":"` + now + `"}}}`} {
		if got := w.next(lines); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	cancel()
	<-w.released

	lines, _ = w.events("types=Mailbox,Other&closeafter=state", before) // what came between two connections is reported at once
	for _, want := range []string{"event: state", "id: " + now, `data: {"@type":"StateChange","changed":{"a7":{"Mailbox":"` + now + `"}}}`, ""} {
		if got := w.next(lines); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}

	lines, _ = w.events("types=EmailDelivery&closeafter=state", "")
	if _, _, err := w.store.UpdateFlags(t.Context(), w.id, []mailbox.FlagChange{{Emails: []mailbox.EmailID{1}, Mode: mailbox.AddFlags, Flags: mailbox.Seen}}); err != nil {
		t.Fatal(err)
	}
	w.deliver() // only this is a delivery
	w.next(lines)
	w.next(lines)
	if got := w.next(lines); !strings.Contains(got, `{"EmailDelivery":"`+w.state()+`"}`) {
		t.Errorf("got %s", got)
	}

	lines, _ = w.events("types=Email&ping=1", "")
	if got := w.next(lines) + w.next(lines); got != `event: pingdata: {"interval":1}` {
		t.Errorf("got %s", got)
	}
	w.server.Stop()
	for line := w.next(lines); line != ""; line = w.next(lines) {
		if !strings.Contains(line, "ping") && !strings.Contains(line, "interval") {
			t.Errorf("got %s", line)
		}
	}
}

func TestStreamsOfADisabledAccountEnd(t *testing.T) {
	w := newWorld(t)
	lines, _ := w.events("types=*", "")
	s := w.socket()
	s.say(`{"@type":"WebSocketPushEnable"}`)
	s.say(`{"@type":"Request","using":[],"methodCalls":[]}`)
	s.hear()
	if err := w.store.SetDisabled(t.Context(), w.id, true); err != nil {
		t.Fatal(err)
	}
	w.deliver() // by an operator, for example
	if line := w.next(lines); line != "" {
		t.Errorf("the event stream says %s", line)
	}
	if _, _, err := s.ws.Read(t.Context()); websocket.CloseStatus(err) != websocket.StatusPolicyViolation {
		t.Errorf("the WebSocket ended with %v", err)
	}
}

func TestEventStreamsOfAnAccountAreLimited(t *testing.T) {
	w := newWorld(t)
	for range 32 {
		w.events("types=*", "")
	}
	response, text := w.send("GET", "/jmap/eventsource?types=*", "", nil)
	if response.StatusCode != 429 {
		t.Errorf("%d %s", response.StatusCode, text)
	}
}

// A socket is a WebSocket of a client.
type socket struct {
	*world
	ws *websocket.Conn
}

func (w *world) socket() *socket {
	w.Helper()
	r, _ := http.NewRequest("GET", w.url, nil)
	r.SetBasicAuth(address, w.password)
	ws, _, err := websocket.Dial(w.Context(), w.url+"/jmap/ws", &websocket.DialOptions{HTTPHeader: r.Header, Subprotocols: []string{"jmap"}})
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { ws.CloseNow() })
	if ws.Subprotocol() != "jmap" {
		w.Errorf("the subprotocol is %q", ws.Subprotocol())
	}
	<-w.released
	return &socket{w, ws}
}

func (s *socket) say(text string) {
	s.Helper()
	if err := s.ws.Write(s.Context(), websocket.MessageText, []byte(text)); err != nil {
		s.Fatal(err)
	}
}

func (s *socket) hear() string {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), 20*time.Second)
	defer cancel()
	_, text, err := s.ws.Read(ctx)
	if err != nil {
		s.Fatal(err)
	}
	return string(text)
}

func TestRFC8887CallsAndChangesComeOverAWebSocket(t *testing.T) {
	w := newWorld(t)
	s := w.socket()
	s.say(`{"@type":"Request","id":"R1","using":["urn:ietf:params:jmap:core"],"methodCalls":[["Core/echo",{"a":1},"c"]]}`)
	if got := s.hear(); !strings.HasPrefix(got, `{"@type":"Response","requestId":"R1","methodResponses":[["Core/echo",{"a":1},"c"]]`) {
		t.Errorf("got %s", got)
	}
	for text, want := range map[string]string{
		`{"@type":"Request","id":"R2","using":["x"],"methodCalls":[]}`: `{"@type":"RequestError","requestId":"R2","type":"urn:ietf:params:jmap:error:unknownCapability","status":400`,
		`{`:                             `{"@type":"RequestError","requestId":null,"type":"urn:ietf:params:jmap:error:notJSON","status":400`,
		`{"@type":"Request","id":"R3"}`: `{"@type":"RequestError","requestId":"R3","type":"urn:ietf:params:jmap:error:notRequest"`,
		`{"@type":"Other","id":"R4"}`:   `{"@type":"RequestError","requestId":"R4","type":"urn:ietf:params:jmap:error:notRequest"`,
	} {
		s.say(text)
		if got := s.hear(); !strings.HasPrefix(got, want) {
			t.Errorf("%s: got %s", text, got)
		}
	}
	before := w.state()
	w.deliver()
	s.say(`{"@type":"WebSocketPushEnable","dataTypes":["Email"],"pushState":"` + before + `"}`)
	if got, want := s.hear(), `{"@type":"StateChange","changed":{"a7":{"Email":"`+w.state()+`"}},"pushState":"`+w.state()+`"}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	w.deliver()
	if got := s.hear(); !strings.Contains(got, `"pushState":"`+w.state()+`"`) {
		t.Errorf("got %s", got)
	}
	s.say(`{"@type":"WebSocketPushDisable"}`)
	w.deliver()
	s.say(`{"@type":"Request","using":["urn:ietf:params:jmap:core"],"methodCalls":[]}`)
	got := s.hear()
	if strings.HasPrefix(got, `{"@type":"StateChange"`) { // it was under way
		got = s.hear()
	}
	if !strings.HasPrefix(got, `{"@type":"Response","methodResponses":[]`) {
		t.Errorf("got %s", got)
	}
	w.server.Stop()
	var err error
	for err == nil { // a change can still be under way
		_, _, err = s.ws.Read(t.Context())
	}
	if websocket.CloseStatus(err) != websocket.StatusGoingAway {
		t.Errorf("after Stop: %v", err)
	}
}

func TestRFC8887BinaryMessagesAndOtherSubprotocolsAreRefused(t *testing.T) {
	w := newWorld(t)
	s := w.socket()
	if err := s.ws.Write(t.Context(), websocket.MessageBinary, []byte(echo)); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.ws.Read(t.Context()); websocket.CloseStatus(err) != websocket.StatusUnsupportedData {
		t.Errorf("binary: %v", err)
	}
	header := http.Header{"Authorization": {"Bearer " + w.token()}, "Origin": {"https://evil.example.org"}}
	if _, response, err := websocket.Dial(t.Context(), w.url+"/jmap/ws", &websocket.DialOptions{HTTPHeader: header, Subprotocols: []string{"jmap"}}); err == nil || response.StatusCode != 403 {
		t.Errorf("another origin: %v", err)
	}
	header.Set("Origin", page)
	if _, response, err := websocket.Dial(t.Context(), w.url+"/jmap/ws", &websocket.DialOptions{HTTPHeader: header}); err == nil || response.StatusCode != 422 {
		t.Errorf("without the subprotocol: %v", err)
	}
}
