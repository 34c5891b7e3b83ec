-- Further addresses of accounts.
CREATE TABLE mailbox_aliases (
  address    TEXT NOT NULL,
  service    TEXT NOT NULL,
  account    INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  PRIMARY KEY (address, service)
) STRICT, WITHOUT ROWID;
CREATE INDEX mailbox_aliases_by_account ON mailbox_aliases (account, address);
