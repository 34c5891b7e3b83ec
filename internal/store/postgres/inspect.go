package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"fanfare.dev/fanfare/internal/store"
)

// Inspect calls fn with the database at a URL, which fn can only read. A server may use it at the same time. Inspect returns fs.ErrNotExist if the
// database has no schema yet.
func Inspect(ctx context.Context, url string, fn func(store.Database) error) error {
	return withReadOnly(ctx, url, use{2, true, scanTimeout}, func(db *DB) error {
		conn, err := db.reading.Acquire(ctx)
		if err != nil {
			return err
		}
		days, err := listDays(ctx, conn.Conn())
		conn.Release()
		if err != nil {
			return err
		}
		for _, of := range days {
			db.keep(of)
		}
		return fn(db)
	})
}

// A Structure is the result of CheckStructure.
type Structure struct {
	DataChecksums bool  // PostgreSQL verifies each page that it reads from the disk
	Failures      int64 // checksum failures since the statistics were reset
	Amcheck       bool  // the extension amcheck is installed
	Permitted     bool  // this user may call its functions
	Tables        int   // tables that were read
	Indexes       int   // indexes that were compared with their tables
}

// A StructureProblem is a damaged table or index.
type StructureProblem struct {
	Relation string
	Index    bool // an index, which can be rebuilt from its table
	Text     string
}

// CheckStructure reads all tables of the schema, and compares all B-tree indexes with their tables if amcheck is installed. It changes nothing and blocks no
// server. step receives the name of each relation before it is read.
func CheckStructure(ctx context.Context, url string, step func(string), problem func(StructureProblem)) (s Structure, err error) {
	config, err := parse(url)
	if err != nil {
		return s, err
	}
	options, err := Options{ApplicationName: "fanfare doctor"}.withDefaults()
	if err != nil {
		return s, err
	}
	options.configure(config, use{readOnly: true})
	conn, err := pgx.ConnectConfig(ctx, config.ConnConfig)
	if err != nil {
		return s, newFailure(troubleOf(err), err)
	}
	defer conn.Close(context.WithoutCancel(ctx)) //nolint:errcheck // it was only read
	if _, err := conn.Exec(ctx, "SET statement_timeout = 0"); err != nil {
		return s, err
	}
	var amcheck string // its schema
	err = conn.QueryRow(ctx, `SELECT current_setting('data_checksums') = 'on', coalesce((SELECT sum(checksum_failures) FROM pg_stat_database WHERE datname = current_database() OR datname IS NULL), 0)::bigint,
		coalesce((SELECT quote_ident(n.nspname) FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace WHERE e.extname = 'amcheck'), '')`).Scan(&s.DataChecksums, &s.Failures, &amcheck)
	if err != nil {
		return s, err
	}
	s.Amcheck, s.Permitted = amcheck != "", amcheck != ""
	check := func(relation string, index bool, query string, args ...any) (ok bool, err error) {
		step(relation)
		rows, err := conn.Query(ctx, query, args...)
		if err == nil {
			for rows.Next() {
				if values, err := rows.Values(); err == nil && len(values) == 1 {
					if text, is := values[0].(string); is && text != "" { // bt_index_check returns nothing
						problem(StructureProblem{relation, index, text})
					}
				}
			}
			err = rows.Err()
		}
		var told *pgconn.PgError
		switch {
		case err == nil:
			return true, nil
		case !errors.As(err, &told):
			return false, err
		case told.Code == "42501": // insufficient_privilege
			return false, nil
		case told.Code == "42P01": // undefined_table: a day that was removed meanwhile
			return true, nil
		}
		text := told.Message
		if told.Detail != "" {
			text += ": " + told.Detail
		}
		problem(StructureProblem{relation, index, text})
		return true, nil
	}
	const relations = `SELECT c.oid::regclass::text FROM pg_class c LEFT JOIN pg_am a ON a.oid = c.relam WHERE c.relnamespace = current_schema()::regnamespace AND `
	tables, err := names(ctx, conn, relations+`c.relkind = 'r' ORDER BY 1`)
	if err != nil {
		return s, err
	}
	for _, table := range tables {
		ok, err := check(table, false, "SELECT sum(octet_length(t::text)) FROM ONLY "+table+" t") // reads long values, too
		if err != nil {
			return s, err
		}
		if s.Tables++; ok && s.Permitted {
			if s.Permitted, err = check(table, false, fmt.Sprintf("SELECT format('block %%s, row %%s: %%s', blkno, offnum, msg) FROM %s.verify_heapam($1::regclass)", amcheck), table); err != nil {
				return s, err
			}
		}
	}
	if !s.Permitted {
		return s, nil
	}
	indexes, err := names(ctx, conn, relations+`c.relkind = 'i' AND a.amname = 'btree' ORDER BY 1`)
	if err != nil {
		return s, err
	}
	for _, index := range indexes {
		ok, err := check(index, true, fmt.Sprintf("SELECT %s.bt_index_check($1::regclass, true)", amcheck), index)
		if err != nil {
			return s, err
		}
		if s.Permitted = ok; !ok {
			break
		}
		s.Indexes++
	}
	return s, nil
}

func names(ctx context.Context, conn *pgx.Conn, query string) ([]string, error) {
	rows, err := conn.Query(ctx, query)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}

// IsDamage reports whether an error says that PostgreSQL cannot read a page of a table, and what it says.
func IsDamage(err error) (text string, is bool) {
	var told *pgconn.PgError
	if errors.As(err, &told) && strings.HasPrefix(told.Code, "XX") {
		return told.Message, true
	}
	return "", false
}
