package httpapi

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/httpapi/wire"
)

func twoNodes() wire.Nodes {
	return wire.Nodes{Clustered: true, Nodes: []wire.Node{
		{Name: "one", URL: "http://10.0.0.1:8085", Responding: true, SilentSeconds: 1.5, ClockSkewMS: -3, Roles: []string{"all"}, Leader: true, LeaseEpoch: 7, Delivers: true, Connections: 4},
		{Name: "two", URL: "http://10.0.0.2:8085", SilentSeconds: 20},
	}}
}

func TestNodesAreListedForOperatorsOnly(t *testing.T) {
	a := newWorld().api(func(p *Dependencies) { p.Nodes = twoNodes })
	rec := ask(t, a, "GET", "/v1/nodes", "")
	var got wire.Nodes
	if err := json.Unmarshal(rec.Body.Bytes(), &got); err != nil || rec.Code != 200 {
		t.Fatalf("%d %s: %v", rec.Code, rec.Body, err)
	}
	if !got.Clustered || len(got.Nodes) != 2 || !reflect.DeepEqual(got, twoNodes()) {
		t.Errorf("%+v", got)
	}
	for _, member := range []string{`"started_at"`, `"last_seen_at"`, `"silent_seconds":1.5`, `"clock_skew_ms":-3`, `"lease_epoch":7`} {
		if !strings.Contains(rec.Body.String(), member) {
			t.Errorf("%s is not in %s", member, rec.Body)
		}
	}
	problemIn(t, ask(t, a, "GET", "/v1/nodes", "", "Authorization", "Bearer "+newsSecret), 403, fanfare.Forbidden)
}

func TestAServerAloneHasNoNodes(t *testing.T) {
	rec := ask(t, newWorld().api(), "GET", "/v1/nodes", "")
	if rec.Code != 200 || !strings.Contains(rec.Body.String(), `"clustered":false`) || !strings.Contains(rec.Body.String(), `"nodes":[]`) {
		t.Errorf("%d %s", rec.Code, rec.Body)
	}
}

func TestClusterSummarizesNodes(t *testing.T) {
	nodes := twoNodes()
	nodes.Nodes = append(nodes.Nodes, wire.Node{Name: "three", Responding: true})
	c := nodes.Cluster()
	if c.Leader != "one" || c.Standbys != 1 || len(c.Silent) != 1 || c.Silent[0] != "two" {
		t.Errorf("%+v", c)
	}
	if alone := (&wire.Nodes{}).Cluster(); alone != nil {
		t.Errorf("%+v", alone)
	}
}
