package postgres

import (
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/pgconn"
)

// settle sends what is queued and reads all answers. It returns the first error of the server, the connection or a row
// function.
func (s *session) settle() error {
	if len(s.sent) == 0 {
		return s.ended()
	}
	s.unsent = 0
	err := s.failed(s.wait())
	if err == nil {
		err = s.failed(s.pipe.Sync())
	}
	broken := err != nil // no further answers follow
	for _, a := range s.sent {
		if broken {
			if a.prepare {
				delete(s.conn.prepared, a.to)
			}
			continue
		}
		fromServer, fromRow := s.take(a, err == nil)
		if fromServer != nil {
			broken = true
		}
		err = firstOf(err, fromServer, fromRow)
	}
	clear(s.sent)
	s.sent = s.sent[:0]
	if !s.lost {
		err = firstOf(err, s.synced())
	}
	return err
}

func firstOf(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// synced reads up to the point at which the server accepts new statements.
func (s *session) synced() (err error) {
	for {
		result, failure := s.pipe.GetResults()
		if failure != nil {
			err = firstOf(err, s.failed(failure))
			if s.lost {
				return err
			}
			continue
		}
		if _, ok := result.(*pgconn.PipelineSync); ok || result == nil {
			return err
		}
	}
}

// take reads one answer. It visits the rows if wanted is true.
func (s *session) take(a answer, wanted bool) (fromServer, fromRow error) {
	result, err := s.pipe.GetResults()
	if err != nil {
		if a.prepare {
			delete(s.conn.prepared, a.to)
		}
		return s.failed(of(a.to, err)), nil
	}
	s.served = true
	switch r := result.(type) {
	case *pgconn.StatementDescription:
		if a.to.shape.Load() == nil {
			r.Name = a.to.name
			a.to.shape.CompareAndSwap(nil, r)
		}
		return nil, nil
	case *pgconn.ResultReader:
		if wanted && a.row != nil {
			fromRow = s.visit(a, r)
		}
		tag, err := r.Close()
		s.committed = s.committed || err == nil && tag.String() == "COMMIT"
		return s.failed(of(a.to, err)), fromRow
	}
	return s.failed(fmt.Errorf("statement %q: unexpected reply of type %T from the database", a.to.name, result)), nil
}

func (s *session) visit(a answer, r *pgconn.ResultReader) error {
	s.busy = a.to
	defer func() { s.busy = nil }()
	s.row = row{statement: a.to, fields: a.to.shape.Load().Fields}
	for r.NextRow() {
		s.visited = true
		if err := s.waitOn(); err != nil {
			return err
		}
		s.row.values = r.Values()
		if err := a.row(a.set, &s.row); err != nil {
			return err
		}
		if s.row.err != nil {
			return s.row.err
		}
	}
	return nil
}

// of adds to an error the statement that it belongs to.
func of(st *statement, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("statement %q: %w", st.name, err)
}

// told reports whether the server sent the error.
func told(err error) bool {
	_, ok := errors.AsType[*pgconn.PgError](err)
	return ok
}
