package httpapi

import (
	"reflect"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"fanfare.dev/fanfare/internal/httpapi/httpio"
	"fanfare.dev/fanfare/internal/httpapi/wire"
)

// schemaIn returns what a body of the media type holds that carries a T: where
// it is not one JSON value, generated clients must know.
func schemaIn[T any](a *API, mediaType string) *huma.Schema {
	switch {
	case mediaType == httpio.CloudEvent:
		return schemaOf[wire.CloudEvent](a)
	case mediaType == httpio.CloudEventBatch:
		return &huma.Schema{Type: huma.TypeArray, Items: schemaOf[wire.CloudEvent](a)}
	case mediaType == httpio.NDJSON:
		return &huma.Schema{Type: huma.TypeString, Description: "On each line " + onLine[T]() + "; of an answer, where the line was refused, a LineError"}
	case mediaType == "application/yaml", strings.HasPrefix(mediaType, "text/"):
		return &huma.Schema{Type: huma.TypeString}
	}
	return schemaOf[T](a)
}

// orSummary says that a bulk body may be answered by an S (quiet=true), and
// makes the answer to a bad line known.
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
