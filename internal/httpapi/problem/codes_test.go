package problem

import (
	commandline "flag" // flag is a parameter of the query here
	"go/ast"
	"go/parser"
	"go/token"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"fanfare.dev/fanfare"
)

var update = commandline.Bool("update", false, "write the generated documents anew")

// errorsMarkdown is docs/reference/errors.md.
func errorsMarkdown(rows []CodeRow) string {
	var b strings.Builder
	b.WriteString(`# Errors

<!-- Generated from the table in internal/httpapi/problem/codes.go: go test ./internal/httpapi/problem -run TestErrorsPageIsFresh -update -->

Every response with a status of 400 or above is a problem document (RFC 9457, ` + "`application/problem+json`" + `):

` + "```json" + `
{"type":"/errors#invalid","title":"Unprocessable Entity","status":422,"code":"invalid",
 "detail":"is not a number","pointer":"/data/mag","request_id":"5e0c7f4d7f1a2b3c"}
` + "```" + `

- ` + "`code`" + ` is for programs and is always one of the codes below. A program does not need to parse ` + "`detail`" + `.
- ` + "`detail`" + ` describes the error, and ` + "`hint`" + ` the remedy. Their wording can change in a later release.
- ` + "`pointer`" + ` (RFC 6901), ` + "`line`" + ` and ` + "`column`" + ` give the position in the input; ` + "`errors`" + ` lists further errors.
- ` + "`type`" + ` is a link to the code on the page /errors of the server.
- ` + "`request_id`" + ` is the id from the header X-Request-Id; it is also in the server log.

| code | status | meaning | what to do |
|---|---|---|---|
`)
	for _, r := range rows {
		b.WriteString("| <a id=\"" + string(r.Code) + "\"></a>`" + string(r.Code) + "` | " + strconv.Itoa(r.Status) + " " + http.StatusText(r.Status) + " | " + r.Meaning + " | " + r.Action + " |\n")
	}
	return b.String()
}

func TestErrorsPageIsFresh(t *testing.T) {
	fresh(t, "../../../docs/reference/errors.md", errorsMarkdown(Codes()))
}

// fresh checks that a generated document is up to date.
func fresh(t *testing.T, path, want string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(path); err != nil || string(got) != want {
		t.Errorf("%s is stale (%v): write it anew with -update", path, err)
	}
}

// codesOfTheRoot reads the constants from error.go, so that none is missed.
func codesOfTheRoot(t *testing.T) []fanfare.Code {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), "../../../error.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var found []fanfare.Code
	ast.Inspect(parsed, func(n ast.Node) bool {
		if spec, ok := n.(*ast.ValueSpec); ok {
			if typ, ok := spec.Type.(*ast.Ident); ok && typ.Name == "Code" {
				text, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
				if err != nil {
					t.Fatal(err)
				}
				found = append(found, fanfare.Code(text))
			}
		}
		return true
	})
	return found
}

func TestEveryCodeHasItsRow(t *testing.T) {
	found := codesOfTheRoot(t)
	if len(found) == 0 {
		t.Fatal("no codes found in error.go")
	}
	rows := map[fanfare.Code]CodeRow{}
	for _, r := range Codes() {
		if r.Status < 400 || r.Meaning == "" || r.Action == "" {
			t.Errorf("%s is not explained: %+v", r.Code, r)
		}
		if _, twice := rows[r.Code]; twice {
			t.Errorf("%s stands twice", r.Code)
		}
		rows[r.Code] = r
	}
	for _, c := range found {
		if _, ok := rows[c]; !ok {
			t.Errorf("%s has no row", c)
		}
	}
	if len(rows) != len(found) {
		t.Errorf("%d rows for %d codes", len(rows), len(found))
	}
}

func TestRetryAfterIsInWholeSeconds(t *testing.T) {
	for _, test := range []struct {
		err  fanfare.Error
		want string
	}{
		{fanfare.Error{Code: fanfare.RateLimited}, "1"},
		{fanfare.Error{Code: fanfare.RateLimited, RetryAfter: 1200 * time.Millisecond}, "2"},
		{fanfare.Error{Code: fanfare.Unavailable}, "2"},
		{fanfare.Error{Code: fanfare.Unavailable, RetryAfter: time.Minute}, "60"},
		{fanfare.Error{Code: fanfare.DiskFull}, "60"},
		{fanfare.Error{Code: fanfare.Invalid}, ""},
	} {
		h := http.Header{}
		Of(&test.err, "id").Headers(h)
		if got := h.Get("Retry-After"); got != test.want {
			t.Errorf("%s after %s: %q, not %q", test.err.Code, test.err.RetryAfter, got, test.want)
		}
	}
}
