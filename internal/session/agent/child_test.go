package agent

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"fanfare.dev/fanfare/internal/session"
)

// TestMain lets the test binary also be the programs that agents start.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "child" {
		os.Exit(child(os.Args[2], os.Args[3:]))
	}
	os.Exit(m.Run())
}

// program returns the command of a child.
func program(t *testing.T, mode string, args ...string) []string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return append([]string{self, "child", mode}, args...)
}

func child(mode string, args []string) int {
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGTERM)
	switch mode {
	case "serve": // until SIGTERM
		<-ended
		return 0
	case "environment": // writes its variables and its folder to a file, then serves
		folder, _ := os.Getwd()
		write(args[0], strings.Join(append(os.Environ(), "FOLDER="+folder), "\n"))
		<-ended
		return 0
	case "stubborn": // ignores SIGTERM, and has a child that does
		helper := exec.Command(os.Args[0], "child", "deaf")
		if helper.Start() != nil {
			return 9
		}
		write(args[0], strconv.Itoa(helper.Process.Pid)+"\n")
		<-make(chan struct{})
	case "deaf":
		<-make(chan struct{})
	case "die":
		for i := range 30 {
			fmt.Fprintf(os.Stderr, "line %d with %s\n", i, os.Getenv("FANFARE_KEY"))
		}
		fmt.Fprint(os.Stdout, "no module named render")
		return 3
	case "note": // appends a word to a file
		write(args[0], args[1]+"\n")
		return 0
	case "note-and-serve":
		write(args[0], args[1]+"\n")
		<-ended
		return 0
	case "hog":
		memory := make([]byte, 256<<20)
		for i := range memory {
			memory[i] = byte(i)
		}
		<-ended
		return int(memory[len(memory)-1])
	case "agent":
		return childAgent(args[0], args[1:])
	}
	return 9
}

func write(path, text string) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err == nil {
		_, err = f.WriteString(text)
	}
	if err != nil {
		panic(err)
	}
	f.Close()
}

// childAgent runs an agent that speaks with its parent on standard input and output.
func childAgent(name string, argv []string) int {
	a, err := New(Options{Config: &Config{Name: name, MaxInstances: 4, Workers: []Rule{{Service: "s", Worker: "w", Commands: [][]string{argv}, MaxInstances: 4}}},
		Dial: func(context.Context) (session.Conn, error) { return &lines{bufio.NewReader(os.Stdin)}, nil }, Logger: slog.New(slog.DiscardHandler)})
	if err != nil || a.Run(context.Background()) != nil {
		return 9
	}
	return 0
}

// lines is a connection with one message in each line.
type lines struct{ in *bufio.Reader }

func (l *lines) Read(context.Context) ([]byte, error) { return l.in.ReadBytes('\n') }
func (l *lines) Write(_ context.Context, b []byte) error {
	_, err := os.Stdout.Write(append(b, '\n'))
	return err
}
func (l *lines) Close(int, string) error { return nil }

// A pipe is one end of a connection in memory.
type pipe struct {
	in, out chan []byte
	ended   context.Context
	end     context.CancelFunc
}

func newPipe() (a, b *pipe) {
	ended, end := context.WithCancel(context.Background())
	x, y := make(chan []byte), make(chan []byte)
	return &pipe{x, y, ended, end}, &pipe{y, x, ended, end}
}

func (p *pipe) Read(ctx context.Context) ([]byte, error) {
	select {
	case b := <-p.in:
		return b, nil
	case <-p.ended.Done():
		return nil, fmt.Errorf("the connection is closed")
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (p *pipe) Write(ctx context.Context, b []byte) error {
	select {
	case p.out <- b:
		return nil
	case <-p.ended.Done():
		return fmt.Errorf("the connection is closed")
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (p *pipe) Close(int, string) error { p.end(); return nil }

// eventually waits until a condition holds.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	deadline := time.After(2 * time.Minute)
	for !holds() {
		select {
		case <-time.After(5 * time.Millisecond):
		case <-deadline:
			t.Fatalf("not reached: %s", what)
		}
	}
}

func exists(pid int) bool {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return false
	}
	_, after, _ := strings.Cut(string(text), ") ")
	return !strings.HasPrefix(after, "Z") // a zombie waits for a parent
}

func decode[T any](t *testing.T, b []byte) T {
	t.Helper()
	var v T
	if err := json.Unmarshal(b, &v); err != nil {
		t.Fatalf("%v in %s", err, b)
	}
	return v
}
