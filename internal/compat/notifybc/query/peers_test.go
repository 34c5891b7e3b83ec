//go:build peers

package query_test

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"fanfare.dev/fanfare/internal/compat/notifybc/query"
)

// A deviation is a way in which sift differs from MongoDB, which we follow.
type deviation struct {
	what   string
	occurs func(where, record string) bool
}

var deviations = []deviation{
	{"a text is not a list of its characters, and a path with an index finds only that element", func(where, _ string) bool {
		return regexp.MustCompile(`"[abc]\.\d`).MatchString(where)
	}},
	{"a list in a list is an element, and its elements are none of the outer list", func(_, record string) bool {
		return regexp.MustCompile(`[\[,]\[`).MatchString(record)
	}},
	{"an element of a list that is no object has no fields, and not even missing ones", func(where, record string) bool {
		return regexp.MustCompile(`"[abc]\.[abc]`).MatchString(where) && strings.Contains(record, "[")
	}},
	{"a value that is no object has no fields", func(where, record string) bool {
		return strings.Contains(where, `"c.b.a"`) || strings.Contains(where, "$exists") && regexp.MustCompile(`"[abc]\.[abc]`).MatchString(where)
	}},
}

// TestQueriesAgreeWithSift compares generated queries over generated records.
func TestQueriesAgreeWithSift(t *testing.T) {
	library, err := filepath.Abs(filepath.Join("..", "..", "..", "..", ".peers", "notifybc", "node_modules", "sift"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(library); err != nil {
		t.Fatalf("%v: run .ci/notifybc-tools first", err)
	}
	g := generator{rand.New(rand.NewPCG(3, 4))}
	type question struct {
		Where  json.RawMessage `json:"where"`
		Record json.RawMessage `json:"record"`
	}
	questions := make([]question, 20_000)
	var lines, complaints bytes.Buffer
	for i := range questions {
		where, _ := json.Marshal(g.where(2))
		record, _ := json.Marshal(g.object(2))
		questions[i] = question{where, record}
		if err := json.NewEncoder(&lines).Encode(questions[i]); err != nil {
			t.Fatal(err)
		}
	}
	command := exec.CommandContext(t.Context(), "node", filepath.Join("testdata", "reference.cjs"), library)
	command.Stdin, command.Stderr = &lines, &complaints
	out, err := command.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, complaints.Bytes())
	}
	read := json.NewDecoder(bytes.NewReader(out))
	equal, matches := 0, 0
	for _, one := range questions {
		var want struct {
			Match bool
			Error string
		}
		if err := read.Decode(&want); err != nil {
			t.Fatal(err)
		}
		if want.Error != "" {
			t.Fatalf("%s: %s", one.Where, want.Error)
		}
		q, err := query.Parse(url.Values{"where": {string(one.Where)}})
		if err != nil {
			t.Fatalf("%s: %v", one.Where, err)
		}
		var record map[string]any
		if err := json.Unmarshal(one.Record, &record); err != nil {
			t.Fatal(err)
		}
		if want.Match {
			matches++
		}
		if q.Match(record) == want.Match {
			equal++
			continue
		}
		excused := false
		for _, d := range deviations {
			excused = excused || d.occurs(string(one.Where), string(one.Record))
		}
		if !excused {
			t.Errorf("%s of %s is %v for sift", one.Where, one.Record, want.Match)
		}
	}
	t.Logf("%d of %d agree, %d match", equal, len(questions), matches)
	if equal < len(questions)*95/100 || matches < len(questions)/10 {
		t.Error("too few agree, or match")
	}
}

// A generator draws queries and records over a few names.
type generator struct{ *rand.Rand }

func (g generator) one(of ...string) string { return of[g.IntN(len(of))] }

func (g generator) scalar() any {
	switch g.IntN(8) {
	case 0:
		return nil
	case 1:
		return g.IntN(2) == 0
	case 2, 3, 4:
		return float64(g.IntN(4))
	}
	return g.one("", "a", "b", "B", "é", "10")
}

func (g generator) value(depth int) any {
	if kind := g.IntN(6); depth > 0 && kind == 0 {
		list := make([]any, g.IntN(4))
		for i := range list {
			list[i] = g.value(depth - 1)
		}
		return list
	} else if depth > 0 && kind < 3 {
		return g.object(depth - 1)
	}
	return g.scalar()
}

func (g generator) object(depth int) map[string]any {
	object := map[string]any{}
	for range g.IntN(5) {
		object[g.one("a", "b", "c")] = g.value(depth)
	}
	return object
}

func (g generator) path() string {
	return g.one("a", "b", "c", "a.b", "b.a", "c.b.a", "a.0", "b.1", "a.0.b")
}

func (g generator) where(depth int) map[string]any {
	where := map[string]any{}
	for range 1 + g.IntN(2) {
		if depth > 0 && g.IntN(3) == 0 {
			where[g.one("$and", "$or", "$nor")] = []any{g.where(depth - 1), g.where(depth - 1)}
			continue
		}
		where[g.path()] = g.test(true)
	}
	return where
}

func (g generator) test(negations bool) any {
	switch g.IntN(11) {
	case 0, 1:
		return g.scalar()
	case 2:
		return map[string]any{g.one("$eq", "$ne"): g.scalar()}
	case 3, 4:
		var v any = g.one("", "a", "b", "10")
		if g.IntN(2) == 0 {
			v = float64(g.IntN(4))
		}
		return map[string]any{g.one("$gt", "$gte", "$lt", "$lte"): v}
	case 5, 6:
		return map[string]any{g.one("$in", "$nin"): []any{g.scalar(), g.scalar()}}
	case 7:
		return map[string]any{"$exists": g.IntN(2) == 0}
	case 8:
		return map[string]any{"$regex": g.one("^a", "b$", ".", "[a-b]"), "$options": g.one("", "i")}
	case 9:
		if inner, ok := g.test(false).(map[string]any); ok && negations {
			return map[string]any{"$not": inner}
		}
	}
	return map[string]any{"$eq": []any{g.scalar()}}
}
