package receivers

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"fanfare.dev/fanfare/client"
)

// The libraries, as their registries name them.
const (
	pythonLibrary = "standardwebhooks==1.1.0"
	nodeLibrary   = "standardwebhooks@1.1.1"
)

// patience is how long something is waited for. It decides only how long a failure
// takes; libraries come over the network.
const patience = 3 * time.Minute

const page = "../../../docs/how-to/webhooks.md"

// shown returns the program that the page shows in a language.
func shown(t *testing.T, language string) string {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	_, after, found := strings.Cut(string(text), "```"+language+"\n")
	program, _, ended := strings.Cut(after, "```\n")
	if !found || !ended {
		t.Fatalf("%s shows no program in %s", page, language)
	}
	return program
}

// run runs a command to its end.
func run(t *testing.T, dir, name string, args ...string) {
	t.Helper()
	c := exec.CommandContext(t.Context(), name, args...)
	c.Dir = dir
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
}

// A program is one that runs beside the test.
type program struct {
	lines chan string
}

// begin starts a program, which ends with the test.
func begin(t *testing.T, env []string, name string, args ...string) *program {
	t.Helper()
	c := exec.Command(name, args...)
	c.Env = append(os.Environ(), env...)
	out, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	c.Stdout, c.Stderr = in, in
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	_ = in.Close()
	p := &program{lines: make(chan string, 1000)}
	go func() {
		defer close(p.lines)
		for s := bufio.NewScanner(out); s.Scan(); {
			p.lines <- s.Text()
		}
	}()
	t.Cleanup(func() {
		_ = c.Process.Kill()
		_ = c.Wait()
	})
	return p
}

// says waits for a line with a text, and returns what is behind it.
func (p *program) says(t *testing.T, text string) string {
	t.Helper()
	limit := time.After(patience)
	var before []string
	for {
		select {
		case line, more := <-p.lines:
			if _, rest, ok := strings.Cut(line, text); ok {
				return rest
			}
			if before = append(before, line); !more {
				t.Fatalf("the program ended and did not say %q:\n%s", text, strings.Join(before, "\n"))
			}
		case <-limit:
			t.Fatalf("the program does not say %q:\n%s", text, strings.Join(before, "\n"))
		}
	}
}

// A passage stands before the receivers: their URLs are known before they run, and
// what comes through can be changed on its way.
type passage struct {
	*httptest.Server
	mu      sync.Mutex
	to      map[string]string // path: port
	changes func(path string, body []byte) []byte
	answers chan string
}

func openPassage(t *testing.T) *passage {
	p := &passage{to: map[string]string{}, answers: make(chan string, 1000)}
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.mu.Lock()
		port, changes := p.to[r.URL.Path], p.changes
		p.mu.Unlock()
		body, err := io.ReadAll(r.Body)
		if err != nil || port == "" {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		if changes != nil {
			body = changes(r.URL.Path, body)
		}
		further, err := http.NewRequestWithContext(r.Context(), http.MethodPost, "http://127.0.0.1:"+port+"/", strings.NewReader(string(body)))
		if err != nil {
			return
		}
		further.Header = r.Header.Clone()
		answer, err := http.DefaultTransport.RoundTrip(further)
		if err != nil {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		defer answer.Body.Close()
		p.answers <- fmt.Sprintf("%s %d", r.URL.Path, answer.StatusCode)
		w.WriteHeader(answer.StatusCode)
	}))
	t.Cleanup(p.Close)
	return p
}

func (p *passage) lead(path, port string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.to[path] = port
}

// receivers make the command of each program.
var receivers = map[string]func(t *testing.T, dir string) []string{
	"python": func(t *testing.T, dir string) []string {
		run(t, dir, "python3", "-m", "venv", "venv")
		run(t, dir, filepath.Join(dir, "venv/bin/pip"), "install", "--quiet", "--disable-pip-version-check", pythonLibrary)
		return []string{filepath.Join(dir, "venv/bin/python"), write(t, dir, "receiver.py", shown(t, "python"))}
	},
	"js": func(t *testing.T, dir string) []string {
		run(t, dir, "npm", "install", "--silent", "--no-audit", "--no-fund", nodeLibrary)
		return []string{"node", write(t, dir, "receiver.mjs", shown(t, "js"))}
	},
	"javascript": func(t *testing.T, dir string) []string { // by Ed25519, which the libraries do not know
		return []string{"node", write(t, dir, "receiver.mjs", shown(t, "javascript"))}
	},
	"go": func(t *testing.T, dir string) []string {
		path := write(t, dir, "receiver.go", shown(t, "go"))
		run(t, dir, "go", "build", "-o", "receiver", path)
		return []string{filepath.Join(dir, "receiver")}
	},
}

func write(t *testing.T, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestTheOfficialLibrariesBelieveWhatIsSentAndNothingElse(t *testing.T) {
	binary := filepath.Join(t.TempDir(), "fanfare")
	run(t, ".", "go", "build", "-o", binary, "../../../cmd/fanfare")
	data := filepath.Join(t.TempDir(), "data")
	server := begin(t, nil, binary, "serve", "--data-dir", data, "--listen", "127.0.0.1:0", "--durability", "relaxed", "--disk-floor", "0", "--allow-networks", "127.0.0.0/8")
	url := server.says(t, "fanfare listens on ")
	key, err := os.ReadFile(filepath.Join(data, "admin.key"))
	if err != nil {
		t.Fatal(err)
	}
	operator, err := client.New(url, strings.TrimSpace(string(key)))
	if err != nil {
		t.Fatal(err)
	}
	api := operator.ForService("stocks")
	both := "whsec_" + base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{1}, 32)) + "\nwhsk_" + base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{2}, 32)) + "\n"
	file := write(t, t.TempDir(), "hook.keys", both)
	if _, err := api.Apply(t.Context(), fmt.Appendf(nil, "service: stocks\nchannels: {hook: {driver: webhook, allow_http: true, secret_file: %q}}\ntopics: {price: {}}\n", file), false); err != nil {
		t.Fatal(err)
	}
	way := openPassage(t)
	running := map[string]*program{}
	for language, command := range receivers {
		to := way.URL + "/" + language
		secret, err := api.ReceiverSecret(t.Context(), "hook", to)
		if err != nil {
			t.Fatal(err)
		}
		args := command(t, t.TempDir())
		running[language] = begin(t, []string{"PORT=0", "WEBHOOK_SECRET=" + secret.Secrets[0], "WEBHOOK_PUBLIC_KEY=" + secret.Secrets[1]}, args[0], args[1:]...)
		way.lead("/"+language, strings.TrimSpace(running[language].says(t, "listening on port ")))
		if _, err := api.PutSubscription(t.Context(), client.Subscription{Topic: "price", Channel: "hook", To: to}); err != nil {
			t.Fatal(err)
		}
	}
	publish := func(data string) {
		if _, err := api.Publish(t.Context(), "price", json.RawMessage(data), client.PublishOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	answered := func(status int) {
		t.Helper()
		for range receivers {
			select {
			case answer := <-way.answers:
				if !strings.HasSuffix(answer, fmt.Sprintf(" %d", status)) {
					t.Errorf("a receiver answered %s, want %d", answer, status)
				}
			case <-time.After(patience):
				t.Fatal("a receiver does not answer")
			}
		}
	}
	publish(`{"symbol":"ACME","price":12.5,"note":"ünïcode \"quoted\""}`)
	answered(http.StatusNoContent)
	for language, p := range running {
		if line := p.says(t, "dlv-"); !strings.Contains(line, "price") || !strings.Contains(line, "ACME") {
			t.Errorf("%s printed %q", language, line)
		}
	}

	way.mu.Lock()
	way.changes = func(_ string, body []byte) []byte { return []byte(strings.Replace(string(body), "12.5", "99.5", 1)) }
	way.mu.Unlock()
	publish(`{"symbol":"ACME","price":12.5}`)
	answered(http.StatusUnauthorized)

	// A receiver rejects a webhook that is signed for another receiver.
	way.mu.Lock()
	way.changes = nil
	languages := slices.Sorted(maps.Keys(way.to))
	ports := way.to
	way.to = map[string]string{}
	for i, path := range languages {
		way.to[path] = ports[languages[(i+1)%len(languages)]]
	}
	way.mu.Unlock()
	publish(`{"symbol":"ACME","price":12.5}`)
	answered(http.StatusUnauthorized)
}
