package wire

import "time"

// MoveRequest has the database to which all data move.
type MoveRequest struct {
	To string `json:"to" doc:"sqlite (files in the data directory of the server), or the URL of a PostgreSQL database, postgres://user:password@host/database. The password does not appear in logs or responses."`
}

// Move is a move of all data to another database.
type Move struct {
	State  string      `json:"state" enum:"running,done,failed" doc:"failed: the old database is still in use"`
	Phase  string      `json:"phase" doc:"preparing, copying, catching up, comparing, switching"`
	From   string      `json:"from" doc:"source database"`
	To     string      `json:"to" doc:"target database"`
	Part   string      `json:"part,omitempty" doc:"part that is copied or compared: control, or a day"`
	Table  string      `json:"table,omitempty" doc:"table that is copied or compared"`
	Rows   int64       `json:"rows" doc:"number of processed rows in this phase; compared rows count once per database"`
	Total  int64       `json:"total" doc:"number of rows in this phase; 0 if unknown"`
	Bytes  int64       `json:"bytes" doc:"size of the processed rows, in bytes"`
	Behind int64       `json:"behind" doc:"bytes written since, which are not in the new database yet"`
	Began  time.Time   `json:"began" doc:"start of the move"`
	Phased time.Time   `json:"phased" doc:"start of the phase"`
	Ended  *time.Time  `json:"ended,omitempty" doc:"end of the move"`
	Pause  float64     `json:"pause_millis,omitempty" doc:"how long writes waited during the switch, in milliseconds"`
	Tables []MoveTable `json:"tables,omitempty" doc:"compared tables"`
	Error  string      `json:"error,omitempty" doc:"why the move failed"`
	Hint   string      `json:"hint,omitempty" doc:"next step"`
}

// MoveTable compares a table in both databases at one point in time.
type MoveTable struct {
	Part     string `json:"part" doc:"control, or a day"`
	Table    string `json:"table" doc:"name of the table"`
	FromRows int64  `json:"from_rows" doc:"rows in the old database"`
	ToRows   int64  `json:"to_rows" doc:"rows in the new database"`
	FromHash string `json:"from_hash" doc:"SHA-256 of all rows in the old database, in key order"`
	ToHash   string `json:"to_hash" doc:"SHA-256 of all rows in the new database, in key order"`
}

// Equal reports whether the tables are equal.
func (t *MoveTable) Equal() bool { return t.FromRows == t.ToRows && t.FromHash == t.ToHash }
