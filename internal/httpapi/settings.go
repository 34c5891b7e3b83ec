package httpapi

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"fanfare.dev/fanfare/internal/httpapi/wire"
)

func (a *API) settingRoutes() {
	read(a, huma.Operation{OperationID: "list-settings", Method: http.MethodGet, Path: "/v1/settings", Tags: []string{"operations"},
		Summary:     "List the settings of the server with their values",
		Description: "Each setting has its value, the place where it was set, and its documentation. Secrets are not shown. Settings change with a restart only. In a cluster, they are those of the node that leads."},
		operator, func(context.Context, caller, *struct{}) (wire.Settings, error) {
			return wire.Settings{Settings: orEmpty(a.deps.Settings)}, nil
		})
}
