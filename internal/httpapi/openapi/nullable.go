package openapi

import (
	"strings"

	"github.com/danielgtaylor/huma/v2"
)

// listsAreNeverNull removes null from the types of lists in responses, which huma adds for
// slices: the server sends [] instead. In requests, null can have a meaning.
func listsAreNeverNull(o *huma.OpenAPI) {
	schemas := o.Components.Schemas.Map()
	asked := map[string]bool{}
	for _, path := range o.Paths {
		for _, op := range operations(path) {
			if op.RequestBody == nil {
				continue
			}
			for _, body := range op.RequestBody.Content {
				collectNames(schemas, body.Schema, asked)
			}
		}
	}
	for name, schema := range schemas {
		for _, member := range schema.Properties {
			if member.Type == huma.TypeArray && !asked[name] {
				member.Nullable = false
			}
		}
	}
}

// collectNames collects the names of the schemas to which s refers.
func collectNames(schemas map[string]*huma.Schema, s *huma.Schema, found map[string]bool) {
	if s == nil {
		return
	}
	if name, ok := strings.CutPrefix(s.Ref, "#/components/schemas/"); ok {
		if !found[name] {
			found[name] = true
			collectNames(schemas, schemas[name], found)
		}
		return
	}
	collectNames(schemas, s.Items, found)
	for _, member := range s.Properties {
		collectNames(schemas, member, found)
	}
	for _, one := range append(append(append([]*huma.Schema(nil), s.OneOf...), s.AnyOf...), s.AllOf...) {
		collectNames(schemas, one, found)
	}
}
