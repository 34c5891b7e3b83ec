package smtp

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"os"
	"os/exec"
	"runtime/pprof"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"fanfare.dev/fanfare/internal/sink"
)

// The test binary can also run the sink, so that a benchmark has it in another process:
// FANFARE_TEST_SINK=plain or tls.
func TestMain(m *testing.M) {
	if mode := os.Getenv("FANFARE_TEST_SINK"); mode != "" {
		if err := sinkProcess(mode); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// sinkProcess serves until its standard input is closed; then it prints what it accepted
// and its CPU time in microseconds.
func sinkProcess(mode string) error {
	cfg := sink.Config{}
	if mode == "tls" {
		var err error
		if cfg.TLS, _, err = sink.SelfSigned("127.0.0.1"); err != nil {
			return err
		}
	}
	if path := os.Getenv("FANFARE_TEST_SINK_PROFILE"); path != "" {
		f, err := os.Create(path)
		if err != nil {
			return err
		}
		defer f.Close()
		if err := pprof.StartCPUProfile(f); err != nil {
			return err
		}
		defer pprof.StopCPUProfile()
	}
	s := sink.New(cfg)
	addr, err := s.Listen("127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Fprintln(os.Stdout, addr)
	go func() {
		_, _ = bufio.NewReader(os.Stdin).ReadString(0)
		_ = s.Close()
	}()
	err = s.Serve()
	fmt.Fprintln(os.Stdout, s.Stats().Accepted, cpuMicros())
	return err
}

func cpuMicros() int64 {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return u.Utime.Nano()/1000 + u.Stime.Nano()/1000
}

// BenchmarkGrouped sends 1 KB messages over 50 connections to the sink in another
// process; beside ns/op it gives the CPU time of both sides per message.
func BenchmarkGrouped(b *testing.B) { benchmark(b, "plain", Config{}) }

// BenchmarkPipelining is the same with envelope and body in two writes.
func BenchmarkPipelining(b *testing.B) { benchmark(b, "plain", Config{Grouping: "pipelining"}) }

// BenchmarkLockStep is the same, waiting for the reply to each command.
func BenchmarkLockStep(b *testing.B) { benchmark(b, "plain", Config{Grouping: "lockstep"}) }

// BenchmarkGroupedTLS is BenchmarkGrouped with STARTTLS.
func BenchmarkGroupedTLS(b *testing.B) {
	benchmark(b, "tls", Config{TLS: TLSRequired, TLSConfig: &tls.Config{InsecureSkipVerify: true}})
}

func benchmark(b *testing.B, mode string, cfg Config) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "FANFARE_TEST_SINK="+mode)
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	lines := bufio.NewReader(stdout)
	addr, err := lines.ReadString('\n')
	if err != nil {
		b.Fatal(err)
	}
	body := oneKilobyte()
	to := make([]string, b.N) // each pair is new to the sink, as in a broadcast
	for i := range to {
		to[i] = "person" + strconv.Itoa(i) + "@example.com"
	}
	message := func(i int) (string, string, []byte) { return "bounces@example.com", to[i], body }
	b.ReportAllocs()
	before := cpuMicros()
	b.ResetTimer()
	stats, err := Blaster{cfg}.Blast(context.Background(), strings.TrimSpace(addr), 50, b.N, message)
	b.StopTimer()
	if err != nil || stats.Accepted != b.N {
		b.Fatalf("%+v, %v", stats, err)
	}
	b.ReportMetric(float64(cpuMicros()-before)/float64(b.N), "client-us/op")
	_ = stdin.Close()
	var accepted int
	var micros float64
	if _, err := fmt.Fscan(lines, &accepted, &micros); err != nil || accepted != b.N {
		b.Fatalf("the sink counted %d of %d: %v", accepted, b.N, err)
	}
	b.ReportMetric(micros/float64(b.N), "sink-us/op")
	b.ReportMetric(float64(stats.Accepted)/stats.Elapsed.Seconds(), "messages/s")
	_ = cmd.Wait()
}

func oneKilobyte() []byte {
	var m bytes.Buffer
	m.WriteString("From: Fanfare <bounces@example.com>\r\nTo: <person@example.com>\r\nSubject: Something happened\r\n" +
		"Date: " + time.Unix(1700000000, 0).UTC().Format(time.RFC1123Z) + "\r\nX-Fanfare-Event: evt-20261120-1001\r\n" +
		"Message-ID: <dlv-20261120-40041-17@example.com>\r\nMIME-Version: 1.0\r\nContent-Type: text/plain; charset=utf-8\r\n\r\n")
	for m.Len() < 1024-64 {
		m.WriteString("Something that you wanted to know of has happened just now.\r\n")
	}
	return m.Bytes()
}
