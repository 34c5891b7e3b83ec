//go:build crashsteps && powerloss

package crash

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/client"
	"fanfare.dev/fanfare/internal/sink"
	"fanfare.dev/fanfare/internal/test/pgtest"
	"fanfare.dev/fanfare/internal/test/powerloss/disk"
	"fanfare.dev/fanfare/internal/test/powerloss/mount"
)

// With the tag powerloss, the tests of this package cut the power where they otherwise kill the process: the data directory of a
// server is on a disk that forgets, and so is the data directory of its PostgreSQL. The server runs in durability fsync. Only in
// subtests for durability relaxed, where a loss of power may lose what was acknowledged last, the process alone dies. Tests that
// start a PostgreSQL themselves have no place with this tag, because the server uses the one on the disk.
func init() {
	cutPower = func(s *server) {
		if !strings.HasSuffix(s.t.Name(), "/relaxed") {
			s.durability = "fsync"
			s.withPower()
		}
	}
}

// forgetAll is the rate of losses that drop everything that was not synced; the others keep a random part.
const forgetAll = 3

func (s *server) withPower() {
	s.t.Helper()
	m := mount.Start(s.t)
	s.dir = filepath.Join(m.Dir, "data")
	var db *pgtest.Server
	if s.database != "" {
		db = pgtest.StartIn(s.t, pgtest.Place{Dir: m.Dir})
		s.database = db.URL
		m.Settle() // initdb syncs nothing
	}
	seed := seedOf(s.t)
	losses := uint64(0)
	s.losePower = func() {
		s.t.Helper()
		if db != nil {
			db.Kill()
		}
		if losses++; losses%forgetAll == 0 {
			m.LosePower(0)
		} else {
			m.LosePower(seed + losses)
		}
		if db != nil {
			db.Restart()
		}
	}
	s.fail = func(kind int) {
		s.t.Helper()
		f := diskFaults[kind]
		if f.Seed = seed + losses; kind == 0 {
			f = disk.Faults{}
		}
		m.SetFaults(f)
	}
	s.t.Cleanup(func() {
		if !s.t.Failed() {
			s.t.Logf("%d losses of power; the disk: %+v", losses, m.Counts())
		}
	})
}

// diskFaults are the ways in which a disk fails; the first is none.
var diskFaults = []disk.Faults{
	{},
	{IOErrors: 0.02},
	{IOErrors: 0.2, SyncsOnly: true},
	{Full: 0.05},
	{Full: 1},
}

// longestFault is how long a disk fails at most.
const longestFault = 500 * time.Millisecond

func TestNothingIsAcknowledgedFalselyWhenTheDiskFailsBeforeThePower(t *testing.T) {
	t.Parallel()
	of := tell(t)
	w := &world{t: of, seed: seedOf(of), server: newServer(of, "fsync", chosenDatabase())}
	w.begin(document, sink.Inject{TempFail: 0.02, PermFail: 0.01, DropBeforeData: 0.001, DropInData: 0.001, DropBeforeReply: 0.001})
	w.subscribe(setting(t, "CRASH_PEOPLE", 1000), 20)
	runs, stopped := setting(t, "CRASH_DISK_FAULTS", 10), 0
	w.during(func() {
		random := w.random(1)
		for run := 0; run < runs && w.given.Err() == nil; run++ {
			l := w.server.current()
			w.server.awaitReady(l)
			wait(random, working)
			w.server.fail(1 + random.IntN(len(diskFaults)-1))
			wait(random, longestFault)
			w.server.fail(0)
			wait(random, working)
			select {
			case <-l.alive.Done(): // it said why and ended
				stopped++
			default:
				w.server.kill(l)
			}
			w.server.start()
		}
		w.server.awaitReady(w.server.current())
	})
	t.Logf("the server ended by itself %d times", stopped)
	w.check(runs)
}

// chosenDatabase returns a text that makes withPower start a PostgreSQL if the tests run on it.
func chosenDatabase() string {
	if choice := os.Getenv(pgtest.ChoiceVariable); choice != "sqlite" {
		return choice
	}
	return ""
}

const filing = `
service: news
channels:
  files: {driver: file, path: %q, from: "News <news@example.org>", rate: unlimited, connections: 4}
topics:
  story: {schema: {type: object, required: [title], properties: {title: {type: string}}}, template: message}
templates:
  message: {subject: "{{ event.title }}", text: "Hello {{ subscriber.address }}: {{ event.title }}\n"}
`

func TestFilesOfAcceptedMessagesSurviveLossesOfPower(t *testing.T) {
	t.Parallel()
	of := tell(t)
	w := &world{t: of, seed: seedOf(of), server: newServer(of, "fsync", chosenDatabase())}
	folder := filepath.Join(filepath.Dir(w.server.dir), "messages")
	w.limit()
	w.server.awaitReady(w.server.start())
	w.must(func(ctx context.Context, api *client.Client) error {
		_, err := api.Apply(ctx, fmt.Appendf(nil, filing, folder), false)
		return err
	})
	const people = 50
	w.must(func(ctx context.Context, api *client.Client) error {
		_, err := api.PutSubscriptions(ctx, func(yield func(client.Subscription, error) bool) {
			for i := range people {
				if !yield(client.Subscription{ID: fmt.Sprint("s", i), Topic: story, Channel: "files", To: fmt.Sprintf("reader%d@example.org", i)}, nil) {
					return
				}
			}
		}, nil)
		return err
	})
	random := w.random(1)
	for loss := range setting(t, "CRASH_POWER_LOSSES", 15) {
		id, err := w.publish(story, fmt.Sprint("story-", loss))
		if err != nil {
			t.Fatal(err)
		}
		w.until("messages are accepted", func() bool {
			var b fanfare.Broadcast
			w.must(func(ctx context.Context, api *client.Client) (err error) { b, err = api.Event(ctx, id); return err })
			return b.Counts[fanfare.Accepted] > 0
		})
		<-time.After(time.Duration(random.Int64N(int64(50 * time.Millisecond))))
		w.server.kill(w.server.current())
		w.server.awaitReady(w.server.start())
		var accepted []fanfare.Delivery // before the loss, or since
		deliveries, err := w.trace(id)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range deliveries {
			if d.State == fanfare.Accepted.String() {
				accepted = append(accepted, d)
			}
		}
		for _, d := range accepted {
			content, err := os.ReadFile(filepath.Join(folder, d.ID+".eml"))
			if want := "Hello " + d.Address; err != nil || !bytes.Contains(content, []byte(want)) {
				t.Fatalf("loss %d: %s is accepted; its file has %d bytes, without %q: %v", loss, d.ID, len(content), want, err)
			}
		}
	}
}

func TestNothingAcknowledgedIsLostWhenThePowerFails(t *testing.T) {
	t.Parallel()
	of := tell(t)
	w := &world{t: of, seed: seedOf(of), server: newServer(of, "fsync", chosenDatabase())}
	w.begin(document, sink.Inject{TempFail: 0.02, PermFail: 0.01, DropBeforeData: 0.001, DropInData: 0.001, DropBeforeReply: 0.001})
	w.subscribe(setting(t, "CRASH_PEOPLE", 3000), 20)
	losses := setting(t, "CRASH_POWER_LOSSES", 15)
	all := 0
	w.during(func() {
		random := w.random(1)
		for hits := 0; hits < losses && w.given.Err() == nil; all++ {
			if w.killSoon(random, func() {}) {
				hits++
			}
			w.server.start()
		}
		w.server.awaitReady(w.server.current())
	})
	w.check(all)
}
