-- Records of the NotifyBC API that have no table of their own, such as its notifications.
CREATE TABLE notifybc_records (
  service TEXT NOT NULL,
  kind    TEXT NOT NULL,
  id      TEXT NOT NULL,
  created INTEGER NOT NULL, -- Unix milliseconds
  updated INTEGER NOT NULL, -- Unix milliseconds
  body    TEXT NOT NULL,    -- JSON
  PRIMARY KEY (service, kind, id)
) STRICT, WITHOUT ROWID;
