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
		{"sign_ins", columns("id text, hash blob, key_id text, began_at int, used_at int, agent text, address text, person text"), 1, ""},
		{"minute_values", columns("at int, body text"), 1, ""},
		{"tasks", columns("id text, body text"), 1, ""},
		{"news_position", columns("one int, given int, planned int"), 1, ""},
		{"sends", columns("id text, body text"), 1, ""},
		{"linked_files", columns("id blob, service text, recipient blob, expires_at int, content blob"), 1, ""},
		{"send_rows", columns("send text, upload int, chunk int, first int, count int, rows blob"), 3, ""},
		{"send_errors", columns("send text, upload int, page int, errors blob"), 3, ""},
		{"send_parts", columns("send text, part int, event text, at int, outcome blob"), 2, ""},
		{"notifybc_records", columns("service text, kind text, id text, created int, updated int, body text"), 3, ""},
	}
}

// SessionTables lists the tables of the part of the sessions that are copied.
func SessionTables() []Table {
	return []Table{
		{"sessions", columns("number int, service text, worker text, kind text, name text, state text, reason text, opened_at int, ended_at int, epoch int, opened_by text, options text"), 1, ""},
		{"session_numbers", columns("one int, given int"), 1, ""},
		{"session_clients", columns("session int, client int, name text, requests int, accepted int, responses int, received int, floor int, flags int"), 2, ""},
		{"session_log", columns("session int, client int, kind int, first int, count int, high int, data blob"), 4, ""},
	}
}

// MailboxTables lists the tables of the part of the mailboxes that are copied.
func MailboxTables() []Table {
	return []Table{
		{"accounts", columns("account int, service text, address text, created_at int, state int, oldest int, max_bytes int, bytes int, max_messages int, messages int, next_mailbox int, next_email int, validity int, merged int, flags int"), 1, ""},
		{"credentials", columns("account int, credential int, name text, created_at int, used_at int, iterations int, salt blob, stored_key blob, server_key blob"), 2, ""},
		{"mailboxes", columns("account int, mailbox int, parent int, name text, role text, sort_order int, subscribed int, validity int, uid_next int, recent_from int, messages int, unseen int, deleted int, bytes int, highest int, created int, changed int, edited int"), 2, ""},
		{"messages", columns("account int, email int, mailbox int, uid int, modseq int, created int, flags int, size int, received int, saved int, thread int, content int, keywords text"), 2, ""},
		{"removed", columns("account int, modseq int, mailbox int, uid int, email int, thread int, created int, destroyed int"), 4, ""},
		{"removed_mailboxes", columns("account int, modseq int, mailbox int"), 3, ""},
		{"threads", columns("account int, hash int, thread int"), 2, ""},
		{"contents", columns("content int, hash blob, size int, base int, uses int, unused int, structure blob"), 1, ""},
		{"content_data", columns("content int, data blob"), 1, ""},
		{"uploads", columns("account int, content int, at int"), 2, ""},
		{"mailbox_numbers", columns("kind text, given int"), 1, ""},
		{"mailbox_records", columns("account int, kind int, record int, created int, changed int, flags int, at int, body text"), 3, ""},
		{"mailbox_aliases", columns("address text, service text, account int, created_at int"), 2, ""},
		{"search_filters", columns("content int, version int, filter blob"), 1, ""},
		{"search_queue", columns("content int"), 1, ""},
		{"inbox_messages", columns("account int, email int, sent_day int, manifest int, position int, at int, read_at int, ended_at int, ended int"), 2, ""},
		{"inbox_broadcasts", columns("sent_day int, seq int, stored int, read int, recalled int, expired int, recalled_at int, expires_at int, work_at int"), 2, ""},
		{"inbox_blocks", columns("block int, sent_day int, manifest int, first int, last int, lowest int, highest int, members int, merged int, base int, at int"), 1, ""},
		{"inbox_block_data", columns("block int, data blob"), 1, ""},
	}
}

// DayTables lists the tables of the part of a day that are copied.
func DayTables() []Table {
	return []Table{
		{"broadcasts", columns("seq int, service text, topic text, posted blob, matched int, messages int, kept_at int, matched_at int, frozen_at int"), 1, ""},
		{"manifests", columns("id int, members blob"), 1, ""},
		{"frozen", columns("id int, seq int"), 1, ""},
		{"attempts", columns("manifest int, position int, attempt int, state int, code int, at int, next_at int, text text, relay text, address text"), 3, ""},
		{"completions", columns("seq int, counts text, first_at int, last_at int, completed_at int, reasons text"), 1, ""},
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
		{"filter_answers", columns("manifest int, first int, last int, answers blob"), 2, ""},
		{"notices", columns("id int, at int, entries int, blob blob"), 1, ""},
		{"notices_position", columns("one int, given int, planned int"), 1, ""},
	}
}

// PageRows limits the rows that a copy reads with one statement. Rows of some tables may have megabytes.
func (t *Table) PageRows() int {
	switch {
	case strings.HasSuffix(t.Name, "_files"), t.Name == "content_data":
		return 1
	case t.Name == "send_rows", t.Name == "send_errors", t.Name == "send_parts":
		return 16
	case t.Name == "session_log", t.Name == "inbox_block_data", t.Name == "search_filters":
		return 64
	}
	return 5000
}

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
