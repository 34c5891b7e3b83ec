package sqlite

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	zombiezen "zombiezen.com/go/sqlite"

	"fanfare.dev/fanfare/internal/store"
)

// SQLite recompiles a statement at its next step if an argument changed on which the plan may
// depend. This costs more than most statements.
func TestOtherArgumentsRecompileNoStatement(t *testing.T) {
	db := openDB(t, t.TempDir())
	for name, p := range map[string]*part{"control": db.Control().(*part), "day": mustDay(t, db, 5)} {
		count := 0
		err := p.writer.conn.SetAuthorizer(zombiezen.AuthorizeFunc(func(zombiezen.Action) zombiezen.AuthResult {
			count++
			return zombiezen.AuthResultOK
		}))
		if err != nil {
			t.Fatal(err)
		}
		for _, statement := range slices.Sorted(maps.Keys(p.format.statements.texts)) {
			if strings.HasPrefix(statement, "copy_") { // which read a thousand rows or more
				continue
			}
			undo := errors.New("undo")
			err := p.Write(t.Context(), func(s store.Session) error {
				run := func(from int64) {
					stmt, err := p.writer.compile(compiled{name: statement}, p.format.statements.texts[statement].Text)
					if err != nil {
						t.Fatalf("%s, %s: %v", name, statement, err)
					}
					args := make([]any, stmt.BindParamCount())
					for i := range args {
						args[i] = from + int64(i)
					}
					_ = s.Run(statement, args...) // some refuse numbers like these
				}
				run(100)
				count = 0
				if run(2000); count > 0 {
					t.Errorf("%s, %s: compiled again for other arguments", name, statement)
				}
				return undo
			})
			if !errors.Is(err, undo) {
				t.Errorf("%s, %s: %v", name, statement, err)
			}
		}
	}
}
