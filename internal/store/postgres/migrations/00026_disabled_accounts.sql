-- A block of messages must find the disabled accounts among its members.
-- +goose NO TRANSACTION
-- +goose Up

CREATE UNIQUE INDEX CONCURRENTLY IF NOT EXISTS accounts_disabled ON accounts (account) WHERE flags = 1;
