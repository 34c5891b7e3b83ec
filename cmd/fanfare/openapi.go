package main

import (
	"github.com/spf13/cobra"

	"fanfare.dev/fanfare/internal/server"
)

// openapiCommand writes what /openapi.json answers, for those who generate a
// client and run no server.
func (c *cli) openapiCommand() *cobra.Command {
	return &cobra.Command{
		Use: "openapi", Short: "Print the OpenAPI document of the API", Hidden: true,
		Long:    "Print the OpenAPI 3.1 document of the API. A running server also serves it at\n/openapi.json.",
		Example: "  fanfare openapi > openapi.json",
		Args:    cobra.NoArgs,
		RunE:    func(*cobra.Command, []string) error { return server.WriteOpenAPI(c.out, version) },
	}
}
