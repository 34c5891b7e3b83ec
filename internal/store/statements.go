package store

import "strings"

// Statements are the named statements of a .sql file.
type Statements map[string]Statement

// A Statement is one of them, in one line.
type Statement struct {
	Text string

	// Idempotent: executed a second time with the same arguments it leaves what
	// the first time left. A driver may repeat it when it cannot know whether it
	// was kept.
	Idempotent bool
}

const (
	nameLine       = "-- name: "
	idempotentLine = "-- idempotent: " // the reason follows
)

// ParseStatements cuts a file at its "-- name: x" lines. A line "-- idempotent:
// why" below the name marks the statement; other comments are left out.
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
