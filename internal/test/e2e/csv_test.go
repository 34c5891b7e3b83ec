package e2e

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"fanfare.dev/fanfare/internal/sink"
)

// isList reports whether an operation is a list according to the document: its response has the cursor of the next page, or its id says so.
func (d *document) isList(op operation) bool {
	if op.method != "GET" {
		return false
	}
	if strings.HasPrefix(op.id, "list-") {
		return true
	}
	answer, _ := op.spec["responses"].(map[string]any)["200"].(map[string]any)
	content, _ := answer["content"].(map[string]any)
	media, _ := content["application/json"].(map[string]any)
	schema, _ := media["schema"].(map[string]any)
	ref, _ := schema["$ref"].(string)
	if ref == "" {
		return false
	}
	members, _ := d.at(strings.TrimPrefix(ref, "#")).(map[string]any)["properties"].(map[string]any)
	return members["next"] != nil
}

// rowsOf returns the rows of all pages of a list, as JSON.
func rowsOf(c *caller, path string) (rows []map[string]any, name string) {
	for cursor := ""; ; {
		q := url.Values{}
		if cursor != "" {
			q.Set("cursor", cursor)
		}
		d := json.NewDecoder(strings.NewReader(c.must(200, "GET", path+"?"+q.Encode(), "", "")))
		d.UseNumber()
		var page map[string]any
		if err := d.Decode(&page); err != nil {
			c.t.Fatal(err)
		}
		for member, value := range page {
			list, ok := value.([]any)
			if !ok || member == "gathered" {
				continue
			}
			name = member
			for _, row := range list {
				rows = append(rows, row.(map[string]any))
			}
		}
		next, isCursor := page["next"].(string)
		if !isCursor || next == "" {
			return rows, name
		}
		cursor = next
	}
}

// cellIs reports whether a cell has a value of JSON.
func cellIs(cell string, value any, ok bool) bool {
	switch v := value.(type) {
	case nil:
		return cell == ""
	case string:
		if v != "" && strings.Contains("=+-@\t\r\n", v[:1]) {
			v = "'" + v
		}
		return cell == v
	case json.Number:
		return cell == v.String()
	case bool:
		return cell == fmt.Sprint(v)
	}
	d := json.NewDecoder(strings.NewReader(cell))
	d.UseNumber()
	var got any
	if d.Decode(&got) != nil {
		return false
	}
	one, _ := json.Marshal(got)
	other, _ := json.Marshal(value)
	return ok && bytes.Equal(one, other)
}

// valueAt follows a name such as stages.received.
func valueAt(row map[string]any, name string) (value any, ok bool) {
	first, rest, nested := strings.Cut(name, ".")
	value, ok = row[first]
	if !nested || !ok {
		return value, ok
	}
	inner, isObject := value.(map[string]any)
	if !isObject {
		return nil, false
	}
	return valueAt(inner, rest)
}

// different says how a CSV differs from rows of JSON.
func different(text string, rows []map[string]any) string {
	all, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	if err != nil {
		return err.Error()
	}
	if len(all) != len(rows)+1 {
		return fmt.Sprintf("%d lines for %d rows", len(all), len(rows))
	}
	columns := map[string]bool{}
	for _, name := range all[0] {
		columns[name] = true
	}
	for i, row := range rows {
		for at, name := range all[0] {
			value, ok := valueAt(row, name)
			if !cellIs(all[i+1][at], value, ok) {
				return fmt.Sprintf("row %d has %s %q, and in JSON %v", i, name, all[i+1][at], value)
			}
		}
		if lost := uncovered(row, "", columns); lost != "" {
			return fmt.Sprintf("row %d has no column for %s", i, lost)
		}
	}
	return ""
}

// uncovered returns a member of a row for which there is no column.
func uncovered(row map[string]any, prefix string, columns map[string]bool) string {
	for name, value := range row {
		if columns[prefix+name] {
			continue
		}
		inner, ok := value.(map[string]any)
		if !ok {
			return prefix + name
		}
		if lost := uncovered(inner, prefix+name+".", columns); lost != "" {
			return lost
		}
	}
	return ""
}

// Each list that the document has is offered as CSV, with all rows of its pages.
func TestEachListAsCSVEqualsItsPages(t *testing.T) {
	t.Parallel()
	s, _ := newsroom(t, sink.Config{}, "")
	s.http.must(201, "PUT", "/v1/subscribers/reader", plain, `{"addresses":[{"kind":"mail","address":"reader@example.org"}],"attributes":{"name":"=1+1"}}`)
	s.http.must(201, "PUT", "/v1/subscriptions/mine", plain, `{"topic":"story","channel":"email","to":"reader@example.org","data":{"a":["x",1]},"title":"=SUM(A1)"}`)
	s.subscribe(crowd(1200)...)
	s.http.must(200, "POST", "/v1/suppressions", plain, `{"address":"gone@example.org","source":"@risk, \"quoted\""}`)
	event := s.http.publish(`{"title":"one"}`)
	s.http.completed(event)
	s.http.must(201, "PUT", "/v1/workers/pricing", plain, `{"title":"Pricing"}`)
	ids := ours(s, event)
	d, lists, filled1200 := described(s), 0, false
	for _, op := range d.operations() {
		if !d.isList(op) {
			continue
		}
		lists++
		content := op.spec["responses"].(map[string]any)["200"].(map[string]any)["content"].(map[string]any)
		if content["text/csv"] == nil {
			t.Errorf("%s does not offer CSV in the document", op.id)
		}
		path, err := filled(op.path, ids)
		if err != nil {
			t.Error(err)
			continue
		}
		if status, _, _ := s.http.send("GET", path, "", ""); status != 200 {
			if other, text, _ := s.http.send("GET", path+"?format=csv", "", ""); other != status {
				t.Errorf("%s: JSON has status %d, and CSV %d: %s", op.id, status, other, text)
			}
			continue
		}
		if op.id == "list-responses" { // by number, and empty here
			if text := s.http.must(200, "GET", path+"?format=csv", "", ""); !strings.HasPrefix(text, "number,") {
				t.Errorf("%s: %s", op.id, text)
			}
			continue
		}
		why := ""
		eventually(t, op.id+" does not change for a moment", func() bool { // such as the time at which a key was used
			rows, name := rowsOf(s.http, path)
			status, text, header := s.http.send("GET", path, "", "", "Accept", "text/csv")
			again, _ := rowsOf(s.http, path)
			if fmt.Sprint(rows) != fmt.Sprint(again) {
				return false
			}
			filled1200 = filled1200 || op.id == "list-deliveries" && len(rows) > 1200
			why = different(text, rows)
			if status != 200 || !strings.Contains(header.Get("Content-Disposition"), name+".csv") {
				why = fmt.Sprint(status, header)
			}
			return true
		})
		if why != "" {
			t.Errorf("%s: %s", op.id, why)
		}
	}
	if lists < 25 || !filled1200 {
		t.Errorf("%d lists; one with several pages: %v", lists, filled1200)
	}
	// A filter applies, and so do the rights of the key.
	if text := s.http.must(200, "GET", "/v1/subscriptions?format=csv&subscriber=reader", "", ""); strings.Count(text, "\n") != 2 || !strings.Contains(text, "'=SUM(A1)") {
		t.Errorf("the subscriptions of one person are %s", text)
	}
	reader := s.http.with(strings.TrimSpace(s.mustRun("", "key", "create", "--service", "news", "--scope", "read")))
	reader.must(403, "GET", "/v1/audit?format=csv", "", "")
}
