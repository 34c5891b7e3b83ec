//go:build peers

package peers

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/client"
)

// document is what the server is told to do: everything, by its default, but the
// rate and the pauses between attempts.
const document = `service: news
channels:
  email: {driver: smtp, relay: %q, from: "News <news@example.com>", connections: 5, rate: unlimited, retry: [1s]}
topics:
  story:
    template: story
templates:
  story:
    subject: "{{ event.title }}"
    text: "Hello {{ subscriber.address }}, this is {{ event.title }}.\n"
`

// A started server is the program with an empty data directory.
type started struct {
	*peer
	binary, url, key string
	client           *client.Client
}

// start starts the program.
func start(t *testing.T, flags ...string) *started {
	t.Helper()
	return startIn(t, nil, flags...)
}

// startIn starts the program with more in its environment.
func startIn(t *testing.T, environment []string, flags ...string) *started {
	t.Helper()
	return startTagged(t, "", environment, flags...)
}

// programs are the paths of the program by build tag. Tests share them.
var (
	programFolder string
	programs      = map[string]string{}
	programsMu    sync.Mutex
)

func TestMain(m *testing.M) {
	os.Exit(func() int {
		var err error
		if programFolder, err = os.MkdirTemp("", "fanfare-peers-"); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(programFolder)
		return m.Run()
	}())
}

// builtWith returns the program built with a tag.
func builtWith(t *testing.T, tag string) string {
	t.Helper()
	programsMu.Lock()
	defer programsMu.Unlock()
	if programs[tag] == "" {
		path := filepath.Join(programFolder, "fanfare-"+tag)
		if out, err := exec.CommandContext(t.Context(), "go", "build", "-tags", tag, "-o", path, "../../../cmd/fanfare").CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		programs[tag] = path
	}
	return programs[tag]
}

// startTagged starts the program built with a tag.
func startTagged(t *testing.T, tag string, environment []string, flags ...string) *started {
	t.Helper()
	s := &started{peer: newPeer(t), binary: builtWith(t, tag)}
	data := filepath.Join(s.dir, "data")
	serve := exec.Command(s.binary, append([]string{"serve", "--data-dir", data, "--listen", "127.0.0.1:0", "--disk-floor", "0", "--public-url", "https://news.example.org"}, flags...)...)
	serve.Env = append(os.Environ(), environment...)
	s.run(serve)
	listens := regexp.MustCompile(`(?m)^fanfare listens on (\S+)$`)
	s.eventually("the server listens", func() bool {
		log, _ := os.ReadFile(s.log)
		found := listens.FindSubmatch(log)
		if found != nil {
			s.url = string(found[1])
		}
		return found != nil
	})
	key, err := os.ReadFile(filepath.Join(data, "admin.key"))
	if err != nil {
		t.Fatal(err)
	}
	s.key = strings.TrimSpace(string(key))
	if s.client, err = client.New(s.url, s.key); err != nil {
		t.Fatal(err)
	}
	return s
}

// serve starts the program and speaks of its service news.
func serve(t *testing.T) *client.Client {
	t.Helper()
	return start(t).client.ForService("news")
}

// The whole program, with a real relay behind it that encrypts and refuses some.
func TestServerDeliversThroughPostfix(t *testing.T) {
	t.Parallel()
	relay := startPostfix(t)
	c := serve(t)
	if _, err := c.Apply(t.Context(), fmt.Appendf(nil, document, relay.address["tls"]), false); err != nil {
		t.Fatal(err)
	}
	kinds := []string{good, good, good, soft, good, good, good, hard, good, good}
	want := map[string]string{} // state by address
	var people strings.Builder
	for i := range 200 {
		kind := kinds[i%len(kinds)]
		address := fmt.Sprintf("%s%d@example.org", kind, i)
		want[address] = map[string]string{good: "accepted 250", soft: "failed 451", hard: "failed 550"}[kind]
		fmt.Fprintf(&people, `{"topic":"story","channel":"email","to":%q}`+"\n", address)
	}
	if sum, err := c.ImportSubscriptions(t.Context(), strings.NewReader(people.String()), nil); err != nil || sum.Created != int64(len(want)) {
		t.Fatalf("%+v, %v", sum, err)
	}
	event, err := c.Publish(t.Context(), "story", map[string]any{"title": "Grüße"}, client.PublishOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var broadcast fanfare.Broadcast
	relay.eventually("all is settled", func() bool {
		broadcast, err = c.Event(t.Context(), event.ID)
		return err == nil && !broadcast.Stages.Completed.IsZero()
	})
	page, err := c.Deliveries(t.Context(), event.ID, client.DeliveryQuery{Limit: 1000})
	if err != nil {
		t.Fatal(err)
	}
	if len(page.Deliveries) != len(want) {
		t.Errorf("%d deliveries, want %d", len(page.Deliveries), len(want))
	}
	for _, d := range page.Deliveries {
		last := d.Attempts[len(d.Attempts)-1]
		if got := fmt.Sprintf("%s %d", d.State, last.Code); got != want[d.Address] || last.Relay != relay.address["tls"] {
			t.Errorf("%s: %s by %s, want %s", d.Address, got, last.Relay, want[d.Address])
		}
		if tries := len(d.Attempts); strings.HasPrefix(d.Address, soft) != (tries == 2) {
			t.Errorf("%s: %d attempts", d.Address, tries)
		}
	}

	mails := relay.delivered()
	hello := regexp.MustCompile(`Hello (\S+), this is`)
	for _, m := range mails {
		if strings.HasPrefix(want[m.to], "accepted") {
			delete(want, m.to)
		} else {
			t.Errorf("%s got a mail and should not have, or got two", m.to)
		}
		if greeted := hello.FindStringSubmatch(m.text); greeted == nil || greeted[1] != m.to || !strings.Contains(m.text, "\nTo: "+m.to+"\n") {
			t.Errorf("%s got another body: %s", m.to, m.text)
		}
		if !strings.Contains(m.text, "using TLS") || m.from == "" {
			t.Errorf("%s: not by TLS, or without a sender: %s", m.to, m.text)
		}
	}
	for address, state := range want {
		if strings.HasPrefix(state, "accepted") {
			t.Errorf("%s got nothing", address)
		}
	}
	t.Logf("%d mails, event to settled in %v", len(mails), broadcast.Stages.Last.Sub(broadcast.Stages.Received).Round(time.Millisecond))
}
