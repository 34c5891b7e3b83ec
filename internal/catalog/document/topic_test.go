package document_test

import "testing"

func TestParseDocumentRefusesAnInvalidDigest(t *testing.T) {
	for digest, at := range map[string]string{
		`{key: content_id}`:             "",
		`{template: "No Name"}`:         "/template",
		`{template: daily, max: 0}`:     "/max",
		`{template: daily, max: 1001}`:  "/max",
		`{template: daily, maximum: 9}`: "/maximum",
	} {
		mustRefuse(t, "service: a\ntopics:\n  x:\n    digest: "+digest, "/topics/x/digest"+at)
	}
}

func TestParseDocumentRefusesAnInvalidGeneration(t *testing.T) {
	for _, text := range []string{`""`, "5", "500ms", "1500ms", "11s", "-5s", "per change", "immediate"} {
		mustRefuse(t, "service: a\ntopics:\n  x:\n    generation: "+text, "/topics/x/generation")
	}
}
