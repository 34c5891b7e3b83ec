package postgres

import (
	"context"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// An admin is a connection for maintenance work that runs about once a day.
type admin struct{ conn *pgx.Conn }

// admin lends one of the reading connections, since there are most of these, for work that takes at most limit; 0 means no
// limit.
func (db *DB) admin(ctx context.Context, limit time.Duration, fn func(context.Context, *admin) error) error {
	ctx, stop := db.answering(ctx)
	defer stop()
	p := db.controlPart(db.reading).(*part)
	retry := retry{db: db}
	for {
		err := db.tryAdmin(ctx, limit, fn)
		if err == nil {
			return nil
		}
		of := p.meet(ctx, db.reading, err)
		if !retry.again(ctx, of) {
			return p.failure(ctx, of, err)
		}
	}
}

// tryAdmin is admin without retries. It limits each exchange with the server, which may be frozen; a call that exceeds its
// limit loses the connection.
func (db *DB) tryAdmin(ctx context.Context, limit time.Duration, fn func(context.Context, *admin) error) error {
	held, err := db.reading.Acquire(ctx)
	if err != nil {
		return err
	}
	defer held.Release()
	conn := held.Conn()
	trip := conn.Config().ConnectTimeout
	err = within(ctx, trip, func(ctx context.Context) error {
		_, err := conn.Exec(ctx, "SET statement_timeout = "+millis(limit)+"; SET default_transaction_read_only = off")
		return err
	})
	if err != nil {
		return err
	}
	if limit == 0 {
		err = fn(ctx, &admin{conn})
	} else {
		err = within(ctx, limit+trip, func(ctx context.Context) error { return fn(ctx, &admin{conn}) })
	}
	_ = within(context.WithoutCancel(ctx), trip, func(ctx context.Context) error {
		_, reset := conn.Exec(ctx, "RESET statement_timeout; SET "+readOnly)
		if reset != nil {
			_ = conn.Close(ctx) // its state is not as the pool expects
		}
		return reset
	})
	return err
}

func within(ctx context.Context, limit time.Duration, fn func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return fn(ctx)
}

// vacuum removes the old row versions of some tables.
func (a *admin) vacuum(ctx context.Context, tables []string) error {
	_, err := a.conn.Exec(ctx, "VACUUM "+strings.Join(tables, ", "))
	return err
}
