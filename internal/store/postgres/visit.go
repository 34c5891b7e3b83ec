package postgres

import (
	"context"
	"net/url"

	"github.com/jackc/pgx/v5"

	"fanfare.dev/fanfare"
)

// Settings are the default settings of a server, by name.
func Settings(ctx context.Context, address string, names []string) (settings map[string]string, err error) {
	settings = map[string]string{}
	err = visit(ctx, address, func(conn *pgx.Conn) error {
		rows, err := conn.Query(ctx, "SELECT name, current_setting(name) FROM pg_settings WHERE name = ANY($1)", names)
		if err != nil {
			return err
		}
		var name, value string
		_, err = pgx.ForEachRow(rows, []any{&name, &value}, func() error {
			settings[name] = value
			return nil
		})
		return err
	})
	return settings, err
}

// Drop removes the schema that a URL names, with all data that a server stored in it.
func Drop(ctx context.Context, address string) error {
	return visit(ctx, address, func(conn *pgx.Conn) error {
		var schema string
		if err := conn.QueryRow(ctx, "SELECT (parse_ident(current_setting('search_path'), false))[1]").Scan(&schema); err != nil {
			return err
		}
		_, err := conn.Exec(ctx, "DROP SCHEMA IF EXISTS "+pgx.Identifier{schema}.Sanitize()+" CASCADE")
		return err
	})
}

// InSchema returns a URL that leads to another schema of the same database.
func InSchema(address, name string) (string, error) {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "postgres" && u.Scheme != "postgresql" { // the cause is left out because it may contain a password
		return "", &fanfare.Error{Code: fanfare.Invalid, Message: "the address is not the URL of a PostgreSQL database", Hint: "use postgres://user@host:5432/database"}
	}
	q := u.Query()
	q.Set("search_path", name)
	u.RawQuery = q.Encode()
	return u.String(), nil
}

// visit calls a function with a new connection to a URL, without the settings of a server.
func visit(ctx context.Context, address string, do func(*pgx.Conn) error) error {
	config, err := parse(address)
	if err != nil {
		return err
	}
	if _, ok := config.ConnConfig.RuntimeParams["search_path"]; !ok {
		config.ConnConfig.RuntimeParams["search_path"] = schema
	}
	conn, err := pgx.ConnectConfig(ctx, config.ConnConfig)
	if err == nil {
		err = do(conn)
		if closing := conn.Close(context.WithoutCancel(ctx)); err == nil {
			err = closing
		}
	}
	if err != nil {
		return newFailure(troubleOf(err), err)
	}
	return nil
}
