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

// A shape is the server's description of a statement: its parameters and its columns.
type shape = pgconn.StatementDescription

// A statement is prepared under its name on each connection that runs it.
type statement struct {
	name       string
	text       string
	idempotent bool // see store.Statement; also true if it only reads

	// shape is nil until a connection has asked the server. Afterwards other connections prepare the statement together
	// with its first run, without another round trip.
	shape atomic.Pointer[shape]

	insert *insert // nil for statements other than INSERT
}

// A catalog has the statements of one part.
type catalog map[string]*statement

// newCatalog returns the statements of a file. kind is a prefix that distinguishes the names of two parts.
func newCatalog(kind string, file store.Statements) catalog {
	c := make(catalog, len(file))
	for name, s := range file {
		c[name] = newStatement(kind+"_"+name, s.Text, s.Idempotent)
	}
	return c
}

// newDayCatalog returns the statements of one day with the names of its tables.
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
		s.idempotent = true // they protect the other statements
	}
	o := own{c, c["begin"], c["begin_writing"], c["begin_snapshot"], c["commit"], c["rollback"], c["fence"]}
	for _, s := range []*statement{o.begin, o.beginWriting, o.beginSnapshot, o.commit, o.rollback} {
		s.shape.Store(&shape{Name: s.name}) // no parameters and no rows
	}
	return o
}
