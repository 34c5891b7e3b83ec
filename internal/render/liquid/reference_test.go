package liquid

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The reference lists all filters and variables of templates.
func TestReferenceListsFiltersAndVariables(t *testing.T) {
	b, err := os.ReadFile("../../../docs/reference/template-variables.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(b), "\n## Filters\n")
	section, _, _ := strings.Cut(rest, "\n## ")
	var told []string
	for _, match := range regexp.MustCompile("`([a-z_]+)`").FindAllStringSubmatch(section, -1) {
		told = append(told, match[1])
	}
	if known := strings.Fields(FilterNames); !slices.Equal(told, known) {
		t.Errorf("the reference lists\n%v\ntemplates know\n%v", told, known)
	}
	for _, match := range regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\| (.*)").FindAllStringSubmatch(string(b), -1) {
		of, ok := builtins[match[1]]
		if !ok {
			t.Errorf("templates do not know %s", match[1])
		}
		if list, ok := of.(map[string]any); ok && list["items"] != nil {
			of = list["items"]
		}
		object, _ := of.(map[string]any)
		fields, _ := object["properties"].(map[string]any)
		for field := range fields {
			if !strings.Contains(match[2], "`"+field+"`") && match[1] != "subscriptions" {
				t.Errorf("the reference of %s lacks %s", match[1], field)
			}
		}
	}
}
