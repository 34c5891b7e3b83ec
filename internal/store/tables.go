package store

import (
	"fmt"
	"strings"
)

// A Kind is the type of a column.
type Kind byte

// The kinds.
const (
	IntColumn  Kind = 'i'
	TextColumn Kind = 't'
	BlobColumn Kind = 'b'
)

// A Column is a column of a table. Its name and type are the same in all databases.
type Column struct {
	Name string
	Kind Kind
}

// A Table describes a table so that it can be copied.
type Table struct {
	Name    string
	Columns []Column
	Key     int    // number of leading columns that form the key
	Only    string // SQL condition for the rows to copy, "" for all; the same in all dialects
}

// ControlTables lists the tables of the control part that are copied.
func ControlTables() []Table {
	return []Table{
		{"meta", columns("name text, value int"), 1, "name = 'change_seq'"},
		{"config", columns("kind text, number int, service int, name text, body text, deleted int"), 2, ""},
		{"filters", columns("number int, text text"), 1, ""},
		{"subscribers", columns("place int, service int, kind int, address text, id text, locale text, time_zone text, attributes text, subscriber int, parts text, flags int"), 1, ""},
		{"subscriptions", columns("place int, subscriber int, topic int, channel int, created_at int, created_seq int, filter int, rule int, id text, params text, data text, ended_at int, ended_seq int, reason text, paused_at int, paused_seq int, resumed_seq int, slot int, was text, title text, description text"), 1, ""},
		{"suppressions", columns("service int, kind int, hash blob, reason text, at int, until int, source text, address text, tag int"), 3, ""},
		{"bounces", columns("service int, kind int, hash blob, day int, manifest int, position int, why int, at int"), 7, ""},
		{"erasures", columns("place int, body text"), 1, ""},
		{"consents", columns("subscription int, at int, body text"), 2, ""},
		{"audit", columns("id int, key_id text, key_name text, request text, service text, action text, kind text, name text, detail text"), 1, ""},
		{"states", columns("topic int, key text, series int, seq int, at int, data blob"), 2, ""},
		{"template_files", columns("sum blob, content blob"), 1, ""},
		{"news", columns("id int, at int, entries int, blob blob"), 1, ""},
		{"news_position", columns("one int, given int, planned int"), 1, ""},
	}
}

// DayTables lists the tables of the part of a day that are copied.
func DayTables() []Table {
	return []Table{
		{"broadcasts", columns("seq int, service text, topic text, posted blob, matched int, messages int, kept_at int, matched_at int, frozen_at int"), 1, ""},
		{"manifests", columns("id int, members blob"), 1, ""},
		{"frozen", columns("id int, seq int"), 1, ""},
		{"attempts", columns("manifest int, position int, attempt int, state int, code int, at int, next_at int, text text, relay text, address text"), 3, ""},
		{"completions", columns("seq int, counts text, first_at int, last_at int, completed_at int"), 1, ""},
		{"switches", columns("seq int, channel int, state text, reason text, at int"), 2, ""},
		{"due", columns("due_at int, manifest int, first int, attempt int, channel int, lane int, positions blob, why int, destination text"), 4, ""},
		{"held", columns("id int, batch text"), 1, ""},
		{"parked", columns("id int, kind text, seq int, reason text, failures int, members int, at int, payload blob"), 1, ""},
		{"history", columns("kind int, segment int, first int, pairs blob"), 3, ""},
		{"history_runs", columns("segment int, level int, pairs int"), 1, ""},
		{"history_position", columns("one int, frozen int, segment int"), 1, ""},
		{"advances", columns("topic int, key text, series int, seq int"), 2, ""},
		{"counters", columns("one int, frozen int, held int, parked int"), 1, ""},
		{"controls", columns("seq int, name text, value text, at int"), 2, ""},
		{"gathered", columns("slot int, due_at int, manifest int, members int, blob blob"), 3, ""},
		{"pending", columns("slot int, due_at int, service text"), 2, ""},
		{"runs", columns("slot int, due_at int, seq int"), 2, ""},
		{"items", columns("seq int, number int, event int, posted blob"), 2, ""},
		{"message_files", columns("id blob, content blob"), 1, ""},
		{"notices", columns("id int, at int, entries int, blob blob"), 1, ""},
		{"notices_position", columns("one int, given int, planned int"), 1, ""},
	}
}

// Large reports whether a row may have megabytes. Such rows are read one by one.
func (t *Table) Large() bool { return strings.HasSuffix(t.Name, "_files") }

// A Dialect writes the parts of SQL that differ between databases.
type Dialect struct {
	// Param returns the parameter with a number, from 1. Bound returns one that is compared to a key column and may exceed the range of the
	// column.
	Param func(number int) string
	Bound func(number int, kind Kind) string
	// Place returns the name of a table, the leading columns that are not copied with their values, and the condition that selects the rows;
	// "" for none.
	Place func(table string) (name, columns, values, condition string)
	// Binary returns the expression that orders a text by its bytes.
	Binary func(column string) string
}

// CopyStatements returns the statements for each table in the format of a .sql file: copy_NAME reads a number of rows after a key, in key
// order; fill_NAME inserts rows; clear_NAME removes all rows; count_NAME counts them.
func CopyStatements(tables []Table, d Dialect) string {
	var file strings.Builder
	for i := range tables {
		t := &tables[i]
		name, first, values, condition := d.Place(t.Name)
		where := both(condition, t.Only)
		var params, key, keyParams []string
		for n, c := range t.Columns {
			params = append(params, d.Param(n+1))
			if n < t.Key {
				column := c.Name
				if c.Kind == TextColumn {
					column = d.Binary(column)
				}
				key, keyParams = append(key, column), append(keyParams, d.Bound(n+1, c.Kind))
			}
		}
		list, order := strings.Join(t.names(), ", "), strings.Join(key, ", ")
		behind := "(" + order + ") > (" + strings.Join(keyParams, ", ") + ")"
		for statement, text := range map[string]string{
			"copy":  fmt.Sprintf("SELECT %s FROM %s%s ORDER BY %s LIMIT %s", list, name, filter(both(where, behind)), order, d.Param(t.Key+1)),
			"fill":  fmt.Sprintf("INSERT INTO %s (%s%s) VALUES (%s%s)", name, first, list, values, strings.Join(params, ", ")),
			"clear": fmt.Sprintf("DELETE FROM %s%s", name, filter(where)),
			"count": fmt.Sprintf("SELECT count(*) FROM %s%s", name, filter(where)),
		} {
			fmt.Fprintf(&file, "%s%s_%s\n%s\n", nameLine, statement, t.Name, text)
		}
	}
	return file.String()
}

func (t *Table) names() []string {
	names := make([]string, len(t.Columns))
	for i, c := range t.Columns {
		names[i] = c.Name
	}
	return names
}

func both(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + " AND " + b
}

func filter(condition string) string {
	if condition == "" {
		return ""
	}
	return " WHERE " + condition
}

// columns parses "name kind, …".
func columns(list string) []Column {
	var all []Column
	for column := range strings.SplitSeq(list, ", ") {
		name, kind, _ := strings.Cut(column, " ")
		all = append(all, Column{name, Kind(kind[0])})
	}
	return all
}
