package client_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"fanfare.dev/fanfare/client"
)

// server is one of this program, for the examples.
var server struct {
	sync.Once
	url, key, mails string
	stop            func()
}

func TestMain(m *testing.M) {
	code := m.Run()
	if server.stop != nil {
		server.stop()
	}
	os.Exit(code)
}

// connect returns a client of a server that was started for the examples, on
// which a service is configured.
func connect() *client.Client {
	server.Do(func() {
		dir, err := os.MkdirTemp("", "fanfare-client-")
		must(err)
		binary := filepath.Join(dir, "fanfare")
		build := exec.Command("go", "build", "-o", binary, "../cmd/fanfare")
		build.Stderr = os.Stderr
		must(build.Run())
		process := exec.Command(binary, "serve", "--data-dir", filepath.Join(dir, "data"), "--listen", "127.0.0.1:0", "--durability", "relaxed", "--disk-floor", "0")
		log, err := process.StderrPipe()
		must(err)
		must(process.Start())
		server.stop = func() {
			must(process.Process.Kill())
			_ = process.Wait() // it was killed
			must(os.RemoveAll(dir))
		}
		lines := bufio.NewScanner(log)
		for lines.Scan() {
			if at, ok := strings.CutPrefix(lines.Text(), "fanfare listens on "); ok {
				server.url = at
				break
			}
		}
		go func() { // the log has to go somewhere
			for lines.Scan() {
			}
		}()
		key, err := os.ReadFile(filepath.Join(dir, "data", "admin.key"))
		must(err)
		server.key, server.mails = strings.TrimSpace(string(key)), filepath.Join(dir, "mails")
	})
	c, err := client.New(server.url, server.key)
	must(err)
	return c
}

func must(err error) {
	if err != nil {
		panic(fmt.Sprint("the server of the examples: ", err))
	}
}
