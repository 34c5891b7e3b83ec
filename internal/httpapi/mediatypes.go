package httpapi

import (
	"reflect"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"fanfare.dev/fanfare/internal/httpapi/httpio"
	"fanfare.dev/fanfare/internal/httpapi/wire"
)

// schemaIn returns the schema of a body with values of type T in the media type. Generated
// clients need to know when a body is not a single JSON value.
func schemaIn[T any](a *API, mediaType string) *huma.Schema {
	switch {
	case mediaType == httpio.CloudEvent:
		return schemaOf[wire.CloudEvent](a)
	case mediaType == httpio.CloudEventBatch:
		return &huma.Schema{Type: huma.TypeArray, Items: schemaOf[wire.CloudEvent](a)}
	case mediaType == httpio.NDJSON:
		return &huma.Schema{Type: huma.TypeString, Description: "On each line " + onLine[T]() + "; in a response, a LineError for a rejected line"}
	case mediaType == "application/yaml", strings.HasPrefix(mediaType, "text/"):
		return &huma.Schema{Type: huma.TypeString}
	}
	return schemaOf[T](a)
}

// orSummary adds S as an alternative response to a bulk body (quiet=true), and
// registers the schema of the response to a rejected line.
func orSummary[S any](a *API, op *huma.Operation, status int) {
	json := op.Responses[strconv.Itoa(status)].Content["application/json"]
	json.Schema = &huma.Schema{OneOf: []*huma.Schema{json.Schema, schemaOf[S](a)}}
	schemaOf[wire.LineError](a)
}

func onLine[T any]() string {
	if t := reflect.TypeFor[T](); t.Kind() != reflect.Interface {
		return "a " + t.Name() + " in JSON"
	}
	return "a JSON value"
}
