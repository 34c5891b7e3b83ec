package httpapi

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"fanfare.dev/fanfare/internal/httpapi/wire"
)

func (a *API) nodeRoutes() {
	read(a, huma.Operation{OperationID: "list-nodes", Method: http.MethodGet, Path: "/v1/nodes", Tags: []string{"operations"},
		Summary: "List the nodes of the cluster",
		Description: "Shows which node leads and which nodes respond. A node that was shut down properly is not listed. " +
			"While the cluster has no leader, the request waits up to 25 seconds and then fails with 503. For a server that is not a node of a cluster, the list is empty."},
		operator, func(context.Context, caller, *struct{}) (wire.Nodes, error) {
			if a.deps.Nodes == nil {
				return wire.Nodes{Nodes: []wire.Node{}}, nil
			}
			n := a.deps.Nodes()
			n.Nodes = orEmpty(n.Nodes)
			return n, nil
		})
}
