package postgres

import (
	_ "embed"
	"fmt"
	"strings"
	"sync/atomic"

	"github.com/jackc/pgx/v5/pgconn"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/store"
)

//go:embed driver.sql
var driverText string

// A shape is what the server says of a statement: its parameters and its columns.
type shape = pgconn.StatementDescription

// A statement is prepared under its name on each connection that runs it.
type statement struct {
	name       string
	text       string
	idempotent bool // as store.Statement says, or it only reads

	// shape is nil until a connection has asked the server. From then on others
	// prepare the statement in the same flight as its first run.
	shape atomic.Pointer[shape]

	insert *insert // nil unless it is one
}

// A catalog has the statements of one part.
type catalog map[string]*statement

// newCatalog makes the statements of a file; kind keeps those of two parts apart.
func newCatalog(kind string, file store.Statements) catalog {
	c := make(catalog, len(file))
	for name, s := range file {
		c[name] = newStatement(kind+"_"+name, s.Text, s.Idempotent)
	}
	return c
}

// newDayCatalog makes the statements of one day, which name its own tables.
func newDayCatalog(of fanfare.Day, file store.Statements) catalog {
	texts := make(store.Statements, len(file))
	for name, s := range file {
		s.Text = strings.ReplaceAll(s.Text, dayHere, of.String())
		texts[name] = s
	}
	return newCatalog("day_"+of.String(), texts)
}

func newStatement(name, text string, idempotent bool) *statement {
	s := &statement{name: name, text: text, idempotent: idempotent || reads(text)}
	s.insert = newInsert(s)
	return s
}

// reads reports whether a statement changes nothing and locks no row.
func reads(text string) bool {
	return strings.HasPrefix(text, "SELECT ") && !strings.Contains(text, " FOR UPDATE") && !strings.Contains(text, " FOR SHARE")
}

func (c catalog) find(name string) (*statement, error) {
	if s := c[name]; s != nil {
		return s, nil
	}
	return nil, fmt.Errorf("no statement %q", name)
}

// own are the statements of the driver itself.
type own struct {
	all                                                  catalog
	begin, beginWriting, beginSnapshot, commit, rollback *statement
	fence                                                *statement
}

func newOwn() own {
	c := newCatalog("driver", store.ParseStatements(driverText))
	for _, s := range c {
		s.idempotent = true // they guard the others
	}
	o := own{c, c["begin"], c["begin_writing"], c["begin_snapshot"], c["commit"], c["rollback"], c["fence"]}
	for _, s := range []*statement{o.begin, o.beginWriting, o.beginSnapshot, o.commit, o.rollback} {
		s.shape.Store(&shape{Name: s.name}) // neither parameters nor rows
	}
	return o
}
