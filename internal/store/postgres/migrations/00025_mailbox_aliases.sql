-- Further addresses of accounts.
-- +goose Up

CREATE TABLE mailbox_aliases (
  account    bigint NOT NULL,
  created_at bigint NOT NULL,
  address    text   COLLATE "C" NOT NULL,
  service    text   COLLATE "C" NOT NULL,
  PRIMARY KEY (address, service),
  UNIQUE (account, address)
) WITH (fillfactor = 80);
COMMENT ON TABLE mailbox_aliases IS 'Further addresses of accounts.';
COMMENT ON COLUMN mailbox_aliases.address IS 'In the form in which mail for it is looked up.';
COMMENT ON COLUMN mailbox_aliases.service IS 'Of the account.';
ALTER TABLE mailbox_aliases ALTER COLUMN address SET STATISTICS 0;
