package store

import "strings"

// Statements are the named statements of a .sql file.
type Statements map[string]Statement

// A Statement is one named statement, in one line.
type Statement struct {
	Text string

	// Idempotent reports whether a second execution with the same arguments changes nothing. A driver may repeat such a statement when it
	// cannot know whether the first execution was committed.
	Idempotent bool
}

const (
	nameLine       = "-- name: "
	idempotentLine = "-- idempotent: " // the reason follows
)

// ParseStatements splits a file at its "-- name: x" lines. A line "-- idempotent: why" below the name marks the statement; other comments are
// removed.
func ParseStatements(file string) Statements {
	statements := Statements{}
	name := ""
	for line := range strings.Lines(file) {
		line = strings.TrimSpace(line)
		s := statements[name]
		switch {
		case strings.HasPrefix(line, nameLine):
			name = strings.TrimSpace(line[len(nameLine):])
			s = Statement{}
		case strings.HasPrefix(line, idempotentLine):
			s.Idempotent = true
		case line == "" || strings.HasPrefix(line, "--"):
			continue
		case s.Text == "":
			s.Text = line
		default:
			s.Text += " " + line
		}
		statements[name] = s
	}
	return statements
}
