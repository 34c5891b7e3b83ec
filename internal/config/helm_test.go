//go:build peers

package config

import (
	"maps"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Go builds helm from its own module, so that the modules of the server do not depend on it.
func TestHelmChartIsRendered(t *testing.T) {
	helm := []string{"tool", "-modfile=../../tools/helm/go.mod", "helm"}
	for _, policy := range []string{"false", "true"} {
		for _, command := range [][]string{{"lint", "--strict"}, {"template", "news"}} {
			args := slices.Concat(helm, command, []string{deployment + "helm", "--set", "networkPolicy.enabled=" + policy})
			out, err := exec.Command("go", args...).Output()
			if err != nil {
				t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, out)
			}
			if command[0] == "lint" {
				continue
			}
			kinds := map[string]bool{}
			for _, m := range regexp.MustCompile(`(?m)^kind: (\w+)$`).FindAllStringSubmatch(string(out), -1) {
				kinds[m[1]] = true
			}
			if want := 3 + strings.Count(policy, "true"); len(kinds) != want {
				t.Errorf("network policy %s: %v, want %d kinds", policy, slices.Sorted(maps.Keys(kinds)), want)
			}
		}
	}
}
