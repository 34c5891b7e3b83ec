package config

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/spf13/pflag"
)

const deployment = "../../examples/cluster/"

func deploymentFile(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(deployment, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// accept fails unless a server starts with these environment variables. Other files than the configuration are secrets.
func accept(t *testing.T, environment map[string]string, file string) Config {
	t.Helper()
	known := map[string]bool{envPrefix + "CONFIG": true}
	for _, f := range fields() {
		known[f.env()] = true
	}
	for name := range environment {
		if !known[name] {
			t.Errorf("%s is not the variable of a setting", name)
		}
	}
	fs := pflag.NewFlagSet("serve", pflag.ContinueOnError)
	Flags(fs)
	c, err := load(fs, func(name string) (string, bool) {
		value, ok := environment[name]
		return value, ok
	}, func(path string) ([]byte, error) {
		if path == environment[envPrefix+"CONFIG"] {
			return []byte(file), nil
		}
		return []byte(strings.Repeat("secret", 8) + "\n"), nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if !c.Clustered() || c.Replicas != 3 {
		t.Errorf("node %q with %d replicas is not a node of a cluster with 3", c.Node, c.Replicas)
	}
	return c
}

func TestSystemdUnitOfANodeIsValid(t *testing.T) {
	for _, name := range []string{"node-1", "deliver-1"} {
		c := systemdNode(t, name)
		if c.Node != name || c.DataDir != "/var/lib/fanfare/"+name || !c.Delivers() || c.Leads() != (name == "node-1") {
			t.Errorf("node %s with the data in %s and the roles %v", c.Node, c.DataDir, c.Roles)
		}
	}
}

// systemdNode returns the settings of a node that systemd runs.
func systemdNode(t *testing.T, name string) Config {
	t.Helper()
	specifiers := strings.NewReplacer("%i", name, "%S", "/var/lib", "%d", "/run/credentials/fanfare@"+name+".service")
	environment := map[string]string{}
	set := func(text string) {
		name, value, _ := strings.Cut(text, "=")
		environment[name] = value
	}
	for line := range strings.Lines(specifiers.Replace(deploymentFile(t, "systemd/fanfare@.service"))) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		switch key {
		case "Environment":
			set(value)
		case "ExecStart":
			_, config, ok := strings.Cut(value, " serve --config ")
			if !ok || strings.Contains(config, " ") {
				t.Errorf("%q: this test knows no other flag than --config", value)
			}
			environment[envPrefix+"CONFIG"] = config
		}
	}
	for line := range strings.Lines(deploymentFile(t, "systemd/"+name+".env")) {
		if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
			set(line)
		}
	}
	return accept(t, environment, deploymentFile(t, "systemd/fanfare.yaml"))
}

func TestComposeFileOfAClusterIsValid(t *testing.T) {
	var file struct {
		Services map[string]struct {
			Environment map[string]string
			Healthcheck struct{ Test []string }
			Secrets     []string
		}
		Secrets map[string]any
	}
	if err := yaml.Unmarshal([]byte(deploymentFile(t, "compose/compose.yaml")), &file); err != nil {
		t.Fatal(err)
	}
	nodes := map[string]bool{} // by name: whether it can lead
	for name, service := range file.Services {
		if len(service.Healthcheck.Test) == 0 {
			t.Errorf("%s has no health check", name)
		}
		for _, secret := range service.Secrets {
			if file.Secrets[secret] == nil {
				t.Errorf("%s: the secret %s is not defined", name, secret)
			}
		}
		if strings.HasPrefix(name, "fanfare-") {
			c := accept(t, service.Environment, "")
			nodes[c.Node] = c.Leads()
		}
	}
	if want := map[string]bool{"node-1": true, "node-2": true, "deliver-1": false}; !maps.Equal(nodes, want) || len(file.Services) != 8 {
		t.Errorf("nodes %v of %d services, want %v of 8", nodes, len(file.Services), want)
	}
}

func TestHelmChartSetsSettingsThatExist(t *testing.T) {
	var values struct {
		Settings map[string]any
	}
	if err := yaml.Unmarshal([]byte(deploymentFile(t, "helm/values.yaml")), &values); err != nil {
		t.Fatal(err)
	}
	settings, err := yaml.Marshal(values.Settings)
	if err != nil {
		t.Fatal(err)
	}
	environment := map[string]string{envPrefix + "CONFIG": "values"}
	for _, m := range regexp.MustCompile(`- name: (FANFARE_[A-Z_]+)\n +(?:value: (.*))?`).FindAllStringSubmatch(deploymentFile(t, "helm/templates/statefulset.yaml"), -1) {
		environment[m[1]] = m[2]
	}
	environment["FANFARE_NODE"], environment["FANFARE_NODE_URL"] = "fanfare-0", "http://fanfare-0.fanfare-nodes.default.svc:8085"
	for _, roles := range []string{"all", "lead", "deliver"} {
		environment["FANFARE_ROLES"] = roles
		accept(t, environment, string(settings))
	}
}
