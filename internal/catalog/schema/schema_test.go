package schema

import (
	"encoding/json"
	"strings"
	"testing"

	"fanfare.dev/fanfare"
)

func TestASchemaMayReferToItsOwnParts(t *testing.T) {
	for _, schema := range []string{
		`{"properties":{"links":{"$ref":"#/$defs/links"}},"$defs":{"links":{"type":"array","items":{"type":"string"}}}}`,
		`{"properties":{"links":{"$ref":"#links"}},"$defs":{"l":{"$anchor":"links","type":"array","items":{"type":"string"}}}}`,
		`{"$id":"https://example.org/x","properties":{"links":{"$ref":"#/$defs/links"}},"$defs":{"links":{"type":"array","items":{"type":"string"}}}}`,
	} {
		check, err := Compile(json.RawMessage(schema))
		if err != nil {
			t.Errorf("%s: %v", schema, err)
			continue
		}
		if err := check(json.RawMessage(`{"links":["a"]}`)); err != nil {
			t.Errorf("%s: %v", schema, err)
		}
		if err := check(json.RawMessage(`{"links":["a",5]}`)); fanfare.CodeOf(err) != fanfare.Invalid || !strings.Contains(err.Error(), "/data/links/1") {
			t.Errorf("%s: a number among the strings: %v", schema, err)
		}
	}
}
