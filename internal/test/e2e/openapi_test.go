package e2e

import (
	"reflect"
	"testing"
)

// Clients are generated without a server: what the program writes by itself is
// what a server answers.
func TestOpenAPIDocumentNeedsNoServer(t *testing.T) {
	t.Parallel()
	s := serve(t)
	served := into[map[string]any](t, s.http.must(200, "GET", "/openapi.json", "", ""))
	written := run(t, nil, "", "openapi")
	if written.code != 0 {
		t.Fatalf("fanfare openapi ended with %d: %s", written.code, written.err)
	}
	offline := into[map[string]any](t, written.out)
	for member, value := range served {
		if !reflect.DeepEqual(offline[member], value) {
			t.Errorf("%s differs: a server answers\n%v\nthe program writes\n%v", member, value, offline[member])
		}
	}
	if len(offline) != len(served) {
		t.Errorf("%d members, a server answers %d", len(offline), len(served))
	}
}
