//go:build peers

package config

import (
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Go builds helm from its own module, so that the modules of the server do not depend on it.
func TestHelmChartIsRendered(t *testing.T) {
	helm := []string{"tool", "-modfile=../../tools/helm/go.mod", "helm"}
	kind := regexp.MustCompile(`(?m)^kind: (\w+)$`)
	role := regexp.MustCompile(`- name: FANFARE_ROLES\n +value: (\w+)`)
	for _, c := range []struct {
		values       string
		kinds, roles []string
	}{
		{"networkPolicy.enabled=false", []string{"PodDisruptionBudget", "Service", "StatefulSet"}, []string{"all"}},
		{"networkPolicy.enabled=true,deliver.replicas=2", []string{"NetworkPolicy", "PodDisruptionBudget", "Service", "StatefulSet"}, []string{"lead", "deliver"}},
	} {
		for _, command := range [][]string{{"lint", "--strict"}, {"template", "news"}} {
			args := slices.Concat(helm, command, []string{deployment + "helm", "--set", c.values})
			out, err := exec.Command("go", args...).Output()
			if err != nil {
				t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, out)
			}
			if command[0] == "lint" {
				continue
			}
			all := func(of *regexp.Regexp) (found []string) {
				for _, m := range of.FindAllStringSubmatch(string(out), -1) {
					found = append(found, m[1])
				}
				return found
			}
			kinds := all(kind)
			slices.Sort(kinds)
			if kinds = slices.Compact(kinds); !slices.Equal(kinds, c.kinds) {
				t.Errorf("%s: kinds %v, want %v", c.values, kinds, c.kinds)
			}
			if roles := all(role); !slices.Equal(roles, c.roles) {
				t.Errorf("%s: roles %v, want %v", c.values, roles, c.roles)
			}
		}
	}
}
