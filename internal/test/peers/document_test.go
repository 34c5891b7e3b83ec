//go:build peers

package peers

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"fanfare.dev/fanfare/client"
)

// tool is a program that .ci/document-tools has installed.
func tool(t *testing.T, path string) string {
	t.Helper()
	at, err := filepath.Abs(filepath.Join("..", "..", "..", ".peers", path))
	if err == nil {
		_, err = os.Stat(at)
	}
	if err != nil {
		t.Fatalf("%v: run .ci/peers first", err)
	}
	return at
}

// held is a document for services that a stranger's tool may send anything to:
// no message leaves the machine.
const held = `service: ops
channels:
  email: {driver: file, path: %q, from: "Fanfare <fanfare@example.org>"}
topics:
  load:
    schema: {type: object, properties: {host: {type: string}, percent: {type: number}}, required: [host, percent]}
    template: load
    rules:
      - {name: above, when: "event.percent > sub.percent", params: {percent: number}}
templates:
  load: {subject: "{{ event.host }} is at {{ event.percent }} %%", text: "Hello {{ subscriber.address }}, you asked to be told."}
`

// Schemathesis makes up requests from the document, right and wrong ones, and
// holds every answer against it.
func TestNoAnswerIsUnlikeTheDocument(t *testing.T) {
	t.Parallel()
	schemathesis := tool(t, "python/bin/schemathesis")
	for name, secretOf := range map[string]func(admin string, c *client.Client) string{
		"operator": func(admin string, _ *client.Client) string { return admin },
		"service": func(_ string, c *client.Client) string {
			key, err := c.CreateKey(t.Context(), client.KeyRequest{Service: "ops", Name: "schemathesis"})
			if err != nil {
				t.Fatal(err)
			}
			return key.Secret
		},
		"nobody": func(string, *client.Client) string { return "" },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := start(t, "--trusted-proxies", "127.0.0.0/8", "--access-log", "all", "--log-level", "debug", "--durability", "relaxed")
			if _, err := s.client.Apply(t.Context(), fmt.Appendf(nil, held, filepath.Join(s.dir, "outbox")), false); err != nil {
				t.Fatal(err)
			}
			secret := secretOf(s.key, s.client)
			args := []string{"--config-file", "schemathesis.toml", "--no-color", "run", s.url + "/openapi.json",
				"--max-examples", "10", "--seed", "1", "--phases", "examples,coverage,fuzzing", "--continue-on-failure", "--request-timeout", "30",
				// A backup is as slow as it is asked to be, and takes everything along.
				"--exclude-operation-id", "take-backup",
				// A move goes to the database that it is told: none is there, which is a 503 and no fault.
				"--exclude-operation-id", "start-move",
				// The stream of the status does not end.
				"--exclude-operation-id", "follow-status",
			}
			if secret != "" {
				args = append(args, "--header", "Authorization: Bearer "+secret)
			} else { // made-up requests of nobody are refused like any other
				args = append(args, "--phases", "examples,coverage")
			}
			command := exec.CommandContext(t.Context(), schemathesis, args...)
			command.Dir = t.TempDir() // it leaves a cache behind
			if err := os.CopyFS(command.Dir, os.DirFS("schemathesis")); err != nil {
				t.Fatal(err)
			}
			out, err := command.CombinedOutput()
			summary := regexp.MustCompile(`(?m)^\s+\d+ generated.*$`).FindString(string(out))
			t.Logf("%s: %s", name, strings.TrimSpace(summary))
			if err != nil || summary == "" {
				t.Errorf("%v\n%s", err, out)
			}
			log, err := os.ReadFile(s.log)
			if err != nil || !strings.Contains(string(log), "msg=request") {
				t.Errorf("the access log is empty (%v)", err)
			}
			for what, credential := range map[string]string{"the admin key": s.key, "the key that was used": secret, "a header": "Bearer "} {
				if credential != "" && strings.Contains(string(log), credential) {
					t.Errorf("%s is in the log", what)
				}
			}
			if i := strings.Index(string(log), "level=ERROR"); i >= 0 {
				t.Errorf("the server met an error: %s", firstLine(string(log)[i:]))
			}
		})
	}
}

func TestTheDocumentKeepsTheRulesOfTheLinter(t *testing.T) {
	t.Parallel()
	s := start(t)
	document := filepath.Join(s.dir, "openapi.json")
	written, err := exec.CommandContext(t.Context(), s.binary, "openapi").Output()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(document, written, 0o600); err != nil {
		t.Fatal(err)
	}
	lint := exec.CommandContext(t.Context(), tool(t, "node/node_modules/.bin/redocly"), "lint", "--config", "redocly.yaml", document)
	lint.Env = append(os.Environ(), "REDOCLY_TELEMETRY=off", "REDOCLY_SUPPRESS_UPDATE_NOTICE=true")
	if out, err := lint.CombinedOutput(); err != nil || strings.Contains(string(out), "Warning was generated") {
		t.Errorf("%v\n%s", err, out)
	}
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}
