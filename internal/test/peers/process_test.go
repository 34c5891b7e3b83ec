//go:build peers

package peers

import (
	"bufio"
	"errors"
	"io/fs"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A peer is a running mail server that delivers to files.
type peer struct {
	t     *testing.T
	dir   string   // all that it has; any account may look into it
	mails string   // folder with a file for each mail it delivered
	queue []string // folders that hold files as long as something is to be delivered
	log   string   // its log file
	extra string   // what it writes behind each mail

	cmd  *exec.Cmd
	gone chan struct{} // closed when it has ended
}

// newPeer makes the folder of a peer. Servers give up their rights, and need to
// find their files afterwards.
func newPeer(t *testing.T) *peer {
	t.Helper()
	if os.Getuid() != 0 {
		t.Fatal("mail servers change their account when they deliver: run as root")
	}
	dir := t.TempDir()
	for _, d := range []string{filepath.Dir(dir), dir} {
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	p := &peer{t: t, dir: dir, log: filepath.Join(dir, "log")}
	p.mails = p.folder("mails")
	return p
}

// folder makes a folder that any account may write to.
func (p *peer) folder(name string) string {
	p.t.Helper()
	path := filepath.Join(p.dir, name)
	if err := os.MkdirAll(path, 0o755); err != nil {
		p.t.Fatal(err)
	}
	if err := os.Chmod(path, 0o777); err != nil {
		p.t.Fatal(err)
	}
	return path
}

// write makes a file that any account may read.
func (p *peer) write(name, text string) string {
	p.t.Helper()
	path := filepath.Join(p.dir, name)
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		p.t.Fatal(err)
	}
	return path
}

// program makes a file that any account may execute.
func (p *peer) program(name, text string) {
	p.t.Helper()
	p.write(name, text)
	p.restrict(name, 0o755)
}

// copyOf puts a program into the peer's folder, where any account may execute it.
func (p *peer) copyOf(path string) string {
	p.t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		p.t.Fatal(err)
	}
	p.program(filepath.Base(path), string(content))
	return filepath.Join(p.dir, filepath.Base(path))
}

// restrict sets what may be done with a file or folder.
func (p *peer) restrict(name string, mode fs.FileMode) {
	p.t.Helper()
	if err := os.Chmod(filepath.Join(p.dir, name), mode); err != nil {
		p.t.Fatal(err)
	}
}

// run starts the server and waits until it greets at every address.
func (p *peer) run(cmd *exec.Cmd, addresses ...string) {
	p.t.Helper()
	output, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o666)
	if err != nil {
		p.t.Fatal(err)
	}
	defer output.Close()
	cmd.Stdout, cmd.Stderr = output, output
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // so that its children can be reached
	}
	cmd.SysProcAttr.Pdeathsig = syscall.SIGTERM // where the tests are cut off, the servers are not left behind
	if err := cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	p.cmd, p.gone = cmd, make(chan struct{})
	go func() {
		_ = cmd.Wait() // how it ended is in its log
		close(p.gone)
	}()
	p.t.Cleanup(p.stop)
	for _, address := range addresses {
		p.eventually("a greeting of "+address, func() bool { return greets(address) })
	}
}

func greets(address string) bool {
	c, err := net.DialTimeout("tcp", address, time.Second)
	if err != nil {
		return false
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(5 * time.Second)); err != nil {
		return false
	}
	in := bufio.NewReader(c)
	line, err := in.ReadString('\n')
	if err != nil || !strings.HasPrefix(line, "220") {
		return false
	}
	_, _ = c.Write([]byte("QUIT\r\n"))
	_, _ = in.ReadString('\n')
	return true
}

// stop ends the server and its children, and shows its log where the test has
// failed.
func (p *peer) stop() {
	_ = p.cmd.Process.Signal(syscall.SIGTERM) // it may have ended by itself
	select {
	case <-p.gone:
	case <-time.After(10 * time.Second):
	}
	// Its group outlives it by the children that were at work.
	_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL)
	<-p.gone
	if p.t.Failed() {
		log, _ := os.ReadFile(p.log)
		p.t.Logf("log of the peer:\n%s", log[max(0, len(log)-8000):])
	}
}

// eventually waits until cond holds, as long as the server lives.
func (p *peer) eventually(what string, cond func() bool) {
	p.t.Helper()
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for !cond() {
		select {
		case <-deadline.C:
			p.t.Fatalf("did not come about: %s", what)
		case <-p.gone:
			p.t.Fatalf("the peer ended: %v", p.cmd.ProcessState)
		case <-again.C:
		}
	}
}

// delivered waits until nothing is left to be delivered, and returns what was
// delivered since it was asked last.
func (p *peer) delivered() []mail {
	p.t.Helper()
	p.eventually("an empty queue", func() bool {
		for _, queue := range p.queue {
			if len(p.files(queue)) > 0 {
				return false
			}
		}
		return true
	})
	var mails []mail
	for _, path := range p.files(p.mails) {
		text, err := os.ReadFile(path)
		if err == nil {
			err = os.Remove(path)
		}
		if err != nil {
			p.t.Fatal(err)
		}
		mails = append(mails, readMail(strings.TrimSuffix(string(text), p.extra)))
	}
	return mails
}

// files lists the files below a folder, of which some may vanish meanwhile.
func (p *peer) files(root string) []string {
	p.t.Helper()
	var all []string
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err == nil && entry.Type().IsRegular() {
			all = append(all, path)
		}
		return err
	})
	if err != nil {
		p.t.Fatal(err)
	}
	return all
}

// program finds a program of the peers.
func program(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err == nil {
		path, err = filepath.Abs(path)
	}
	if err != nil {
		t.Fatalf("%v: make test-peers installs it", err)
	}
	return path
}

// freePort picks a port that no outgoing connection takes: it lies below the
// range that the system gives to those.
func freePort(t *testing.T) int {
	t.Helper()
	for range 100 {
		port := 20_000 + rand.IntN(10_000)
		l, err := net.Listen("tcp", at(port))
		if err == nil {
			l.Close()
			return port
		}
	}
	t.Fatal("no free port")
	return 0
}

func at(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

// account returns the numbers of an account, as "uid:gid".
func account(t *testing.T, name string) (uid, gid string) {
	t.Helper()
	u, err := user.Lookup(name)
	if err != nil {
		t.Fatalf("%v: make test-peers makes it", err)
	}
	return u.Uid, u.Gid
}

// own gives a folder to an account.
func own(t *testing.T, path, name string) {
	t.Helper()
	uid, gid := account(t, name)
	u, err := strconv.Atoi(uid)
	if err != nil {
		t.Fatal(err)
	}
	g, err := strconv.Atoi(gid)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(path, u, g); err != nil {
		t.Fatal(err)
	}
}
