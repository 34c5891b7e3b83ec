package main

import (
	"bytes"
	"context"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// onWhat says for every command on which data it works. A new command fails the tests
// below until it has a word here, and is held to it from then on.
func onWhat() map[string]target {
	all := map[string]target{}
	for of, commands := range map[target]string{
		onServer: "agent list; apply; approve; audit; backup; cancel; channel delete; channel get; channel list; channel put; config show; delivery get; destinations list; destinations resume;" +
			"dkim rotate; event get; event list; expire; explain; export subscribers; export subscriptions; import notify-templates; import subscribers; import subscriptions; key create; key list;" +
			"key reseal; key revoke; key rotate; mailbox alias add; mailbox alias list; mailbox alias remove; mailbox create; mailbox disable; mailbox dns; mailbox enable; mailbox export; mailbox import; mailbox list; mailbox password create; mailbox password list; mailbox password revoke; mailbox quota; mailbox reindex; mailbox remove; mailbox show; match; message get; message list; migrate; nodes; parked drop; parked list; parked retry; pause; preview; publish; rate broadcast; rate channel; recall;" +
			"relay drain; relay list; relay restore; report conditions; resume; rule delete; rule get; rule list; rule put; secret; send; session close; session get; session list; session open; session responses; session send; session trace; sends approve; sends cancel; sends change; sends create; sends delete; sends errors; sends list; sends pause; sends preview; sends report; sends resume; sends rows; sends show; sends submit; sends upload; service delete; service get;" +
			"service list; service put; state; status; subscriber delete; subscriber erase; subscriber export; subscriber get; subscriber list; subscriber merge;" +
			"subscriber put; subscription delete; subscription get; subscription list; subscription pause; subscription put; subscription resume; suppression add;" +
			"suppression export; task cancel; task list; task show; suppression get; suppression import; suppression lift; suppression list; template delete; template diff; template discard; template draft;" +
			"template get; template lint; template list; template publish; template put; template versions; topic delete; topic get; topic list; topic put; trace; worker delete; worker get; worker list; worker put",
		onDirectory: "config check; demo; doctor; restore; serve",
		onNothing: "backup verify; bench; bench list; bench pairs; bench part; bench report; config reference; demo files; dkim new; dkim record; import notifybc; openapi; replies list; replies test;" +
			"sink; version; workers",
	} {
		for path := range strings.SplitSeq(commands, ";") {
			all["fanfare "+strings.TrimSpace(path)] = of
		}
	}
	return all
}

// runnable lists every command that does something, by its path.
func runnable(c *cli) map[string]*cobra.Command {
	all := map[string]*cobra.Command{}
	var walk func(*cobra.Command)
	walk = func(command *cobra.Command) {
		if command.Runnable() {
			all[command.CommandPath()] = command
		}
		for _, sub := range command.Commands() {
			walk(sub)
		}
	}
	walk(c.root())
	return all
}

// ranWith is what came of a command line under an environment.
type ranWith struct {
	code  int
	errs  string
	asked []string // of the server at which the environment or a flag points
}

// runWith executes a command line. SERVER stands for the URL of a server that notes what
// it is asked.
func runWith(t *testing.T, env map[string]string, args ...string) ranWith {
	t.Helper()
	return runIn(t.Context(), t, env, args...)
}

func runIn(ctx context.Context, t *testing.T, env map[string]string, args ...string) ranWith {
	t.Helper()
	f := &fake{answers: map[string]string{"GET /v1/status": `{}`}}
	s := httptest.NewServer(f)
	defer s.Close()
	lookup := func(k string) (string, bool) {
		v, ok := env[k]
		return strings.ReplaceAll(v, "SERVER", s.URL), ok
	}
	for i := range args {
		args[i] = strings.ReplaceAll(args[i], "SERVER", s.URL)
	}
	var errs bytes.Buffer
	c := &cli{in: http.NoBody, out: io.Discard, err: &errs, lookupEnv: lookup}
	code := c.run(ctx, args)
	return ranWith{code, errs.String(), f.asked}
}

func TestEveryCommandRefusesAFlagAndAnEnvironmentThatNameDifferentData(t *testing.T) {
	dir, key := t.TempDir(), "secret"
	if err := os.WriteFile(filepath.Join(dir, "admin.key"), []byte(key), 0o600); err != nil {
		t.Fatal(err)
	}
	other := t.TempDir()
	known := onWhat()
	commands := runnable(&cli{lookupEnv: func(string) (string, bool) { return "", false }})
	for _, path := range slices.Sorted(maps.Keys(commands)) {
		of, ok := known[path]
		if !ok {
			t.Errorf("%s is new: say in onWhat on which data it works, and in targetOf where that is not a server", path)
			continue
		}
		delete(known, path)
		t.Run(path, func(t *testing.T) {
			words := strings.Fields(path)[1:]
			t.Chdir(t.TempDir()) // of a command that is not refused
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if of == onDirectory {
				cancel() // one that serves must not go on
			}
			refused := func(env map[string]string, flags []string, says ...string) {
				t.Helper()
				r := runIn(ctx, t, env, append(slices.Clone(words), flags...)...)
				if r.code != 1 || len(r.asked) > 0 {
					t.Errorf("%v with %v ended with %d and asked %q: %s", flags, env, r.code, r.asked, r.errs)
				}
				for _, want := range says {
					if !strings.Contains(r.errs, want) {
						t.Errorf("%v with %v does not say %q: %s", flags, env, want, r.errs)
					}
				}
			}
			switch of {
			case onServer:
				refused(map[string]string{"FANFARE_SERVER": "SERVER"}, []string{"--data-dir", dir}, "--data-dir", "FANFARE_SERVER", dir, "add --server", "unset FANFARE_SERVER")
				refused(map[string]string{"FANFARE_SERVER": "SERVER", "FANFARE_KEY": key}, []string{"--data-dir", dir}, "--data-dir", "FANFARE_SERVER")
				refused(map[string]string{"FANFARE_SERVER": "SERVER", "FANFARE_DATA_DIR": other}, []string{"--data-dir", dir}, "--data-dir", "FANFARE_SERVER")
				refused(map[string]string{"FANFARE_DATA_DIR": dir}, []string{"--server", "SERVER"}, "--server", "FANFARE_DATA_DIR", "add --data-dir", "unset FANFARE_DATA_DIR")
			case onDirectory:
				refused(nil, []string{"--server", "SERVER"}, "--server", "omit --server")
			}
		})
	}
	for path := range known {
		t.Errorf("%s is gone: take it out of onWhat", path)
	}
}

// The same commands, where flags say that they work on something else.
func TestAFlagThatChangesOnWhichDataACommandWorksIsHeeded(t *testing.T) {
	dir := t.TempDir()
	for name, test := range map[string]struct {
		env  map[string]string
		args []string
		says []string
	}{
		"migrate from a directory":   {map[string]string{"FANFARE_SERVER": "SERVER"}, []string{"migrate", "--from", dir, "--to", "postgres://a@127.0.0.1:1/b"}, []string{"--from " + dir, "FANFARE_SERVER"}},
		"a plan of a server":         {nil, []string{"migrate", "--from", "sqlite", "--to", dir, "--dry-run", "--server", "SERVER"}, []string{"--server", "works on a data directory"}},
		"a comparison of a server":   {nil, []string{"migrate", "--from", "sqlite", "--to", dir, "--compare", "--server", "SERVER"}, []string{"--server", "works on a data directory"}},
		"the mark of a server":       {nil, []string{"migrate", "--from", "sqlite", "--unmark", "--server", "SERVER"}, []string{"--server", "works on a data directory"}},
		"a plan of some directory":   {map[string]string{"FANFARE_SERVER": "SERVER"}, []string{"migrate", "--from", "sqlite", "--to", dir, "--dry-run"}, []string{"FANFARE_SERVER", "--data-dir"}},
		"a backup without a server":  {nil, []string{"backup", "--stopped", "x.tar", "--server", "SERVER"}, []string{"--server", "works on a data directory"}},
		"a backup of some directory": {map[string]string{"FANFARE_SERVER": "SERVER"}, []string{"backup", "--stopped", "x.tar"}, []string{"FANFARE_SERVER", "--data-dir"}},
		"a restore somewhere":        {map[string]string{"FANFARE_SERVER": "SERVER"}, []string{"restore", "x.tar"}, []string{"FANFARE_SERVER", "--data-dir"}},
		"what was restored":          {map[string]string{"FANFARE_SERVER": "SERVER"}, []string{"restore", "--list", "--data-dir", dir}, []string{"--data-dir " + dir, "FANFARE_SERVER"}},
		"two directories":            {nil, []string{"migrate", "--server", "SERVER", "--from", dir, "--to", "postgres://a@127.0.0.1:1/b"}, []string{"no server uses " + dir}},
	} {
		t.Run(name, func(t *testing.T) {
			r := runWith(t, test.env, test.args...)
			if r.code != 1 || len(r.asked) > 0 {
				t.Errorf("ended with %d and asked %q: %s", r.code, r.asked, r.errs)
			}
			for _, want := range test.says {
				if !strings.Contains(r.errs, want) {
					t.Errorf("does not say %q: %s", want, r.errs)
				}
			}
		})
	}
}

func TestAFlagAndAnEnvironmentThatAgreeAreObeyed(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "admin.key"), []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		env  map[string]string
		args []string
	}{
		"both flags":                     {map[string]string{"FANFARE_SERVER": "http://127.0.0.1:1"}, []string{"--server", "SERVER", "--data-dir", dir}},
		"the flag repeats the directory": {map[string]string{"FANFARE_SERVER": "SERVER", "FANFARE_DATA_DIR": dir}, []string{"--data-dir", dir + "/."}},
		"the flag repeats the server":    {map[string]string{"FANFARE_SERVER": "SERVER", "FANFARE_DATA_DIR": dir}, []string{"--server", "SERVER"}},
		"the key comes from elsewhere":   {map[string]string{"FANFARE_DATA_DIR": "/nowhere", "FANFARE_KEY": "secret"}, []string{"--server", "SERVER"}},
		"another server by flag":         {map[string]string{"FANFARE_SERVER": "http://127.0.0.1:1", "FANFARE_KEY": "secret"}, []string{"--server", "SERVER"}},
		"the environment alone":          {map[string]string{"FANFARE_SERVER": "SERVER", "FANFARE_DATA_DIR": dir}, nil},
		"an empty variable":              {map[string]string{"FANFARE_SERVER": "", "FANFARE_DATA_DIR": ""}, []string{"--server", "SERVER", "--data-dir", dir}},
	} {
		t.Run(name, func(t *testing.T) {
			if r := runWith(t, test.env, append([]string{"status"}, test.args...)...); r.code != 0 || len(r.asked) != 1 {
				t.Errorf("ended with %d and asked %q: %s", r.code, r.asked, r.errs)
			}
		})
	}
}

// A key of one server is not sent to another because of a variable.
func TestTheKeyOfANamedDirectoryIsStrongerThanTheVariable(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "admin.key"), []byte("of-the-directory"), 0o600); err != nil {
		t.Fatal(err)
	}
	f := &fake{answers: map[string]string{"GET /v1/status": `{}`}}
	s := httptest.NewServer(f)
	defer s.Close()
	c := &cli{out: io.Discard, err: io.Discard, lookupEnv: func(k string) (string, bool) {
		return map[string]string{"FANFARE_KEY": "of-the-variable"}[k], true
	}}
	if code := c.run(t.Context(), []string{"status", "--server", s.URL, "--data-dir", dir}); code != 0 || strings.TrimSpace(f.keys[0]) != "Bearer of-the-directory" {
		t.Errorf("%d %q", code, f.keys)
	}
}

func TestACompletionSendsNoKeyToAServerThatMayBeAnother(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "admin.key"), []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	if r := runWith(t, map[string]string{"FANFARE_SERVER": "SERVER"}, "__complete", "topic", "get", "--data-dir", dir, ""); len(r.asked) > 0 {
		t.Errorf("it asked %q", r.asked)
	}
}
