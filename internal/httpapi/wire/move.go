package wire

import "time"

// MoveRequest says where all that is kept shall be from now on.
type MoveRequest struct {
	To string `json:"to" doc:"sqlite: the files in the server's data directory; else the URL of a PostgreSQL database, postgres://user:password@host/database. The password is in no log and no answer."`
}

// Move is a move of all that is kept into another database.
type Move struct {
	State  string      `json:"state" enum:"running,done,failed" doc:"failed: the old database is in charge as before"`
	Phase  string      `json:"phase" doc:"preparing, copying, catching up, comparing, switching"`
	From   string      `json:"from" doc:"the database that it began with"`
	To     string      `json:"to" doc:"the database that is in charge when it is done"`
	Part   string      `json:"part,omitempty" doc:"what is copied or compared: control, or a day"`
	Table  string      `json:"table,omitempty" doc:"the table of the part"`
	Rows   int64       `json:"rows" doc:"rows of this phase that are done; one that is compared counts on both sides"`
	Total  int64       `json:"total" doc:"rows of this phase; 0 if unknown"`
	Bytes  int64       `json:"bytes" doc:"bytes of the rows that are done"`
	Behind int64       `json:"behind" doc:"bytes that were written meanwhile and are not in the new database yet"`
	Began  time.Time   `json:"began" doc:"when it was started"`
	Phased time.Time   `json:"phased" doc:"when the phase began"`
	Ended  *time.Time  `json:"ended,omitempty" doc:"when it ended"`
	Pause  float64     `json:"pause_millis,omitempty" doc:"for how long writes waited while the database in charge changed"`
	Tables []MoveTable `json:"tables,omitempty" doc:"the compared parts"`
	Error  string      `json:"error,omitempty" doc:"why it failed"`
	Hint   string      `json:"hint,omitempty" doc:"the next step"`
}

// MoveTable is a table in both databases at one moment.
type MoveTable struct {
	Part     string `json:"part" doc:"control, or a day"`
	Table    string `json:"table" doc:"name of the table"`
	FromRows int64  `json:"from_rows" doc:"rows in the old database"`
	ToRows   int64  `json:"to_rows" doc:"rows in the new one"`
	FromHash string `json:"from_hash" doc:"SHA-256 of all rows in the old one, in the order of their keys"`
	ToHash   string `json:"to_hash" doc:"the same of the new one"`
}

// Equal tells whether both have the same.
func (t *MoveTable) Equal() bool { return t.FromRows == t.ToRows && t.FromHash == t.ToHash }
