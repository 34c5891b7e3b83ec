//go:build powerloss

package mount

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// plainVariable names the directory of a NATS server in the environment of the process that runs it.
const plainVariable = "FANFARE_POWERLOSS_NATS"

// plainNATS opens the file store of NATS as its documentation says for durability, and nothing else.
func plainNATS(dir string) (*server.Server, jetstream.JetStream, error) {
	s, err := server.NewServer(&server.Options{JetStream: true, StoreDir: dir, SyncAlways: true, DontListen: true, NoSigs: true, NoLog: true})
	if err != nil {
		return nil, nil, err
	}
	s.Start()
	if !s.ReadyForConnections(time.Minute) {
		return nil, nil, errors.New("NATS does not start")
	}
	conn, err := nats.Connect("", nats.InProcessServer(s))
	if err != nil {
		return nil, nil, err
	}
	js, err := jetstream.New(conn)
	return s, js, err
}

// runPlainNATS carries out a step for each line that it reads, and writes a line when the server has acknowledged it. It ends when it is killed.
func runPlainNATS(dir string, in io.Reader, out io.Writer) error {
	ctx := context.Background()
	_, js, err := plainNATS(dir)
	if err != nil {
		return err
	}
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		switch step := lines.Text(); step {
		case "stream":
			_, err = js.CreateStream(ctx, jetstream.StreamConfig{Name: "S", Subjects: []string{"s"}, Storage: jetstream.FileStorage})
		case "block": // fills the block file of the stream, so that the next message begins another one
			err = fillBlock(ctx, js, dir)
		default:
			_, err = js.Publish(ctx, "s", []byte(step))
		}
		if err == nil {
			_, err = fmt.Fprintln(out, "acknowledged")
		}
		if err != nil {
			return err
		}
	}
	return lines.Err()
}

func fillBlock(ctx context.Context, js jetstream.JetStream, dir string) error {
	for {
		if blocks, err := blocksIn(dir); err != nil || len(blocks) > 1 {
			return err
		}
		if _, err := js.Publish(ctx, "s", make([]byte, 1<<20-1024)); err != nil {
			return err
		}
	}
}

func blocksIn(dir string) ([]string, error) {
	return filepath.Glob(filepath.Join(dir, "jetstream", "$G", "streams", "S", "msgs", "*.blk"))
}

// startPlainNATS runs a NATS server in another process. do carries out a step there.
func startPlainNATS(t *testing.T, dir string) (do func(step string), kill func()) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^$")
	cmd.Env, cmd.Stderr = append(os.Environ(), plainVariable+"="+dir), os.Stderr
	in, err := cmd.StdinPipe()
	must(t, err)
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	answers := bufio.NewReader(out)
	do = func(step string) {
		t.Helper()
		_, err := fmt.Fprintln(in, step)
		must(t, err)
		if _, err := answers.ReadString('\n'); err != nil {
			t.Fatalf("NATS did not acknowledge the step %s: %v", step, err)
		}
	}
	return do, func() {
		must(t, cmd.Process.Kill())
		_ = cmd.Wait() // it was killed
	}
}

// The file store of NATS syncs the content of its files, but no directory. A message that it has acknowledged with SyncAlways is therefore lost if the power
// fails after it has created the stream, or a block file, on a file system that keeps a new name only after a sync of the directory. internal/bus/names.go
// makes up for it.
func TestNATSLosesWhatItAcknowledgedBecauseItSyncsNoDirectory(t *testing.T) {
	const repaired = "NATS kept the message: if its file store syncs directories now, internal/bus/names.go and this test can go"
	for _, test := range []struct {
		name    string
		durable []string // steps before everything is stored
		lost    []string // steps after that
	}{
		{"a new stream", nil, []string{"stream", "message"}},
		{"a new block", []string{"stream", "message"}, []string{"block", "last message"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			m := Start(t)
			dir := filepath.Join(m.Dir, "nats")
			do, kill := startPlainNATS(t, dir)
			for _, step := range test.durable {
				do(step)
			}
			m.Settle()
			for _, step := range test.lost {
				do(step)
			}
			kill()
			m.LosePower(0)

			s, js, err := plainNATS(dir)
			must(t, err)
			defer func() { s.Shutdown(); s.WaitForShutdown() }()
			last := test.lost[len(test.lost)-1]
			stream, err := js.Stream(t.Context(), "S")
			if errors.Is(err, jetstream.ErrStreamNotFound) {
				return // with its message
			}
			must(t, err)
			got, err := stream.GetLastMsgForSubject(t.Context(), "s")
			if err == nil && string(got.Data) == last {
				t.Fatal(repaired)
			}
			if err != nil && !errors.Is(err, jetstream.ErrMsgNotFound) {
				t.Fatal(err)
			}
		})
	}
}

// A message in a block whose name is stored survives: the test above has no other reason to find one missing.
func TestNATSKeepsWhatItAcknowledgedInAStoredBlock(t *testing.T) {
	m := Start(t)
	dir := filepath.Join(m.Dir, "nats")
	do, kill := startPlainNATS(t, dir)
	do("stream")
	do("message")
	m.Settle()
	do("last message")
	kill()
	m.LosePower(0)
	s, js, err := plainNATS(dir)
	must(t, err)
	defer func() { s.Shutdown(); s.WaitForShutdown() }()
	stream, err := js.Stream(t.Context(), "S")
	must(t, err)
	got, err := stream.GetLastMsgForSubject(t.Context(), "s")
	if err != nil || string(got.Data) != "last message" {
		t.Fatalf("the last message is lost: %v", err)
	}
}
