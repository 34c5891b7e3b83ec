package postgres

import (
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

// Stats are counters since the start, and the current state.
type Stats struct {
	Pools   map[string]PoolStats // recording, control, reading, settling, standby
	Retries int64                // statements and transactions that were run again
	Losses  int64                // connections that were lost while they were used
	Away    bool                 // the database cannot be reached
	Absent  bool                 // the standby could not be read at the last attempt
}

// PoolStats are the statistics of one pool of connections.
type PoolStats struct {
	Max, Open, Busy int
	Waits           int64         // calls that found no idle connection
	Waited          time.Duration // total waiting time
}

// Stats returns the current statistics.
func (db *DB) Stats() Stats {
	s := Stats{Pools: map[string]PoolStats{}, Retries: db.retries.Load(), Losses: db.losses.Load(), Away: db.outage.on.Load(), Absent: db.absence.on.Load()}
	for name, pool := range map[string]*pgxpool.Pool{"recording": db.recording, "control": db.control, "reading": db.reading, "settling": db.settling, "standby": db.standby} {
		if pool == nil {
			continue
		}
		of := pool.Stat()
		s.Pools[name] = PoolStats{Max: int(of.MaxConns()), Open: int(of.TotalConns()), Busy: int(of.AcquiredConns()),
			Waits: of.EmptyAcquireCount(), Waited: of.EmptyAcquireWaitTime()}
	}
	return s
}
