package agent

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/session/agentmessage"
)

// asUser adds the user that an agent of root must name.
func asUser() string {
	if os.Geteuid() == 0 {
		return "user: root, "
	}
	return ""
}

func TestLoadCompletesTheDefaults(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "agent.yaml")
	for name, text := range map[string]string{
		"agent.yaml": "name: host-1\nserver: https://news.example.org\nkey_file: agent.key\nmax_instances: 6\nworkers:\n  - {" + asUser() + "service: govuk, worker: render, commands: [[/bin/true, -x]], memory_limit: 512MiB}\n",
		"agent.key":  "ff_key\n",
	} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c, err := Load(path)
	if err != nil {
		t.Fatal(err)
	}
	if r := c.Workers[0]; c.Name != "host-1" || r.MaxInstances != 6 || r.memory != 512<<20 {
		t.Errorf("%+v", c)
	}
	if own, worker, err := c.ReadKeys("other"); own != "ff_key" || worker != "ff_key" || err != nil {
		t.Errorf("keys %q and %q, %v", own, worker, err)
	}
	c.WorkerKeyFile = "missing.key"
	if _, _, err := c.ReadKeys(""); fanfare.CodeOf(err) != fanfare.Unauthenticated {
		t.Errorf("a missing key file: %v", err)
	}
	c.WorkerKeyFile, c.KeyFile = "", ""
	if own, _, err := c.ReadKeys("other"); own != "other" || err != nil {
		t.Errorf("the key of the environment: %q, %v", own, err)
	}
	if _, _, err := c.ReadKeys(""); fanfare.CodeOf(err) != fanfare.Unauthenticated {
		t.Errorf("no key: %v", err)
	}
}

func TestLoadRefusesAFileThatCannotWork(t *testing.T) {
	entry := func(fields string) string { return "workers: [{" + asUser() + fields + "}]" }
	const valid = "service: s, worker: w, commands: [[/bin/true]]"
	cases := []struct{ name, text, pointer, message string }{
		{"an unknown field", "worker: []", "", "unknown field"},
		{"no YAML", "workers: [", "", ""},
		{"no worker", "name: x", "/workers", "does not allow any worker"},
		{"a wrong name", "name: 'a b'\n" + entry(valid), "/name", "not valid"},
		{"no service", entry("worker: w, commands: [[/bin/true]]"), "/workers/0/service", "not the name of a service"},
		{"no worker name", entry("service: s, commands: [[/bin/true]]"), "/workers/0/worker", "not the name of a worker"},
		{"no command", entry("service: s, worker: w"), "/workers/0/commands", "no allowed command"},
		{"a relative command", entry("service: s, worker: w, commands: [[true]]"), "/workers/0/commands/0", "does not begin with an absolute path"},
		{"a relative program", entry("service: s, worker: w, programs: [[]]"), "/workers/0/programs/0", "does not begin with an absolute path"},
		{"a relative folder", entry(valid + ", directories: [x]"), "/workers/0/directories/0", "not an absolute path"},
		{"a variable of the agent", entry(valid + ", environment: [FANFARE_KEY]"), "/workers/0/environment/0", "not the name of a variable"},
		{"all variables", entry(valid + ", environment: ['FAN*']"), "/workers/0/environment/0", "not the name of a variable"},
		{"an unknown user", strings.Replace(entry(valid), "user: root, ", "", 1)[:len(strings.Replace(entry(valid), "user: root, ", "", 1))-2] + ", user: nobody-has-this-name}]", "/workers/0/user", "does not exist"},
		{"a negative number", entry(valid + ", max_instances: -1"), "/workers/0/max_instances", "not a number of instances"},
		{"a size without a unit that is known", entry(valid + ", memory_limit: 5MB"), "/workers/0/memory_limit", "not a size"},
		{"a worker twice", "workers: [{" + asUser() + valid + "}, {" + asUser() + valid + "}]", "/workers/1", "listed twice"},
	}
	for _, c := range cases {
		path := filepath.Join(t.TempDir(), "agent.yaml")
		if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := Load(path)
		wrong, ok := errors.AsType[*fanfare.Error](err)
		if !ok {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if wrong.Code != fanfare.Invalid || wrong.File != path || wrong.Pointer != c.pointer || !strings.Contains(wrong.Message, c.message) || wrong.Hint == "" {
			t.Errorf("%s: %+v", c.name, wrong)
		}
	}
}

func TestLoadRefusesAFileThatEverybodyMayChange(t *testing.T) {
	path := filepath.Join(t.TempDir(), "agent.yaml")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(path); err == nil || !strings.Contains(err.Error(), "every user of this machine can change the file") {
		t.Errorf("Load: %v", err)
	}
}

func TestRootMustNameTheUserOfAWorker(t *testing.T) {
	r := Rule{Service: "s", Worker: "w", Commands: [][]string{{"/bin/true"}}}
	err := r.findUser()
	if root := os.Geteuid() == 0; root != (err != nil) {
		t.Errorf("root: %t, error: %v", root, err)
	}
	r.User = "nobody"
	err = r.findUser()
	switch {
	case os.Geteuid() == 0 && (err != nil || r.run == nil || r.run.uid == 0):
		t.Errorf("user nobody for root: %v", err)
	case os.Geteuid() != 0 && err == nil:
		t.Error("an agent without the rights of root accepts another user")
	}
}

func TestOnlyWhatTheFileListsIsAllowed(t *testing.T) {
	folder := t.TempDir()
	inside, outside := filepath.Join(folder, "allowed", "below"), filepath.Join(folder, "allowed-not")
	for _, f := range []string{inside, outside} {
		if err := os.MkdirAll(f, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(outside, filepath.Join(inside, "link")); err != nil {
		t.Fatal(err)
	}
	r := Rule{Service: "s", Worker: "w", Commands: [][]string{{"/bin/render", "--fast"}, {"/bin/setup"}}, Programs: [][]string{{"/bin/python3", "/opt/w.py"}},
		Directories: []string{filepath.Join(folder, "allowed")}, Environment: []string{"LANG", "RENDER_*"}}
	run := func(argv ...string) agentmessage.Definition { return agentmessage.Definition{Command: argv} }
	with := func(change func(*agentmessage.Definition)) agentmessage.Definition {
		d := run("/bin/render", "--fast")
		change(&d)
		return d
	}
	cases := []struct {
		name    string
		d       agentmessage.Definition
		pointer string // "": allowed
	}{
		{"the command", run("/bin/render", "--fast"), ""},
		{"no argument", run("/bin/render"), "/command"},
		{"a further argument", run("/bin/render", "--fast", "--delete"), "/command"},
		{"an argument with a space", run("/bin/render --fast"), "/command"},
		{"another path to it", run("/bin/../bin/render", "--fast"), "/command"},
		{"a name without a path", run("render", "--fast"), "/command"},
		{"no command", run(), "/command"},
		{"the program", run("/bin/python3", "/opt/w.py"), ""},
		{"the program with arguments", run("/bin/python3", "/opt/w.py", "-c", "2"), ""},
		{"the program with another script", run("/bin/python3", "-c", "import os"), "/command"},
		{"a zero byte", run("/bin/python3", "/opt/w.py", "a\x00b"), "/command"},
		{"an allowed prepare", with(func(d *agentmessage.Definition) { d.Prepare = []string{"/bin/setup"} }), ""},
		{"another prepare", with(func(d *agentmessage.Definition) { d.Prepare = []string{"/bin/sh", "-c", "x"} }), "/prepare"},
		{"another release", with(func(d *agentmessage.Definition) { d.Release = []string{"/bin/rm"} }), "/release"},
		{"allowed variables", with(func(d *agentmessage.Definition) {
			d.Environment = map[string]string{"LANG": "cy", "RENDER_MODE": "x"}
		}), ""},
		{"another variable", with(func(d *agentmessage.Definition) { d.Environment = map[string]string{"LD_PRELOAD": "/tmp/x.so"} }), "/environment/LD_PRELOAD"},
		{"a variable of the agent", with(func(d *agentmessage.Definition) { d.Environment = map[string]string{"FANFARE_KEY": "x"} }), "/environment/FANFARE_KEY"},
		{"a longer name", with(func(d *agentmessage.Definition) { d.Environment = map[string]string{"LANGUAGE": "x"} }), "/environment/LANGUAGE"},
		{"the folder", with(func(d *agentmessage.Definition) { d.Directory = filepath.Join(folder, "allowed") }), ""},
		{"a folder below", with(func(d *agentmessage.Definition) { d.Directory = inside }), ""},
		{"a folder with a similar name", with(func(d *agentmessage.Definition) { d.Directory = outside }), "/directory"},
		{"a way out", with(func(d *agentmessage.Definition) { d.Directory = inside + "/../../allowed-not" }), "/directory"},
		{"a link out", with(func(d *agentmessage.Definition) { d.Directory = filepath.Join(inside, "link") }), "/directory"},
		{"a missing folder", with(func(d *agentmessage.Definition) { d.Directory = filepath.Join(inside, "missing") }), "/directory"},
		{"a relative folder", with(func(d *agentmessage.Definition) { d.Directory = "." }), "/directory"},
	}
	for _, c := range cases {
		l, refusal := r.allow(&c.d, time.Time{})
		switch {
		case c.pointer == "" && refusal != nil:
			t.Errorf("%s: refused: %s", c.name, refusal.Message)
		case c.pointer != "" && (l != nil || refusal == nil || refusal.Pointer != c.pointer || refusal.Hint == "" || refusal.Definition != c.d.Digest()):
			t.Errorf("%s: %+v", c.name, refusal)
		}
	}
	if _, refusal := (&Rule{Service: "s", Worker: "w"}).allow(&agentmessage.Definition{Command: []string{"/bin/render"}}, time.Time{}); refusal == nil || !strings.Contains(refusal.Message, "does not list worker w of service s") {
		t.Errorf("a worker that the file does not list: %+v", refusal)
	}
}

func TestOutputIsBounded(t *testing.T) {
	var passed strings.Builder
	o := &output{prefix: "[x] ", secret: "ff_secret", next: &passed}
	for range 3 {
		o.Write([]byte(strings.Repeat("a", maxLine)))
	}
	o.Write([]byte("\nthe key is ff_"))
	o.Write([]byte("secret\r\n\xff\n"))
	got := o.last()
	if len(got) != 3 || len(got[0]) != agentmessage.MaxLineBytes+len("…") || got[1] != "the key is [key]" || got[2] != "�" {
		t.Errorf("%q", got)
	}
	if passed.Len() > maxLine+100 || strings.Contains(passed.String(), "ff_secret") {
		t.Errorf("%d bytes were passed on", passed.Len())
	}
}
