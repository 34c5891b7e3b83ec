-- Records of the NotifyBC API.
-- +goose Up

CREATE TABLE notifybc_records (
  service text   COLLATE "C" NOT NULL,
  kind    text   COLLATE "C" NOT NULL,
  id      text   COLLATE "C" NOT NULL,
  created bigint NOT NULL,
  updated bigint NOT NULL,
  body    text   NOT NULL,
  PRIMARY KEY (service, kind, id)
);
COMMENT ON TABLE notifybc_records IS 'Records of the NotifyBC API that have no table of their own, such as its notifications.';
COMMENT ON COLUMN notifybc_records.created IS 'Unix milliseconds.';
COMMENT ON COLUMN notifybc_records.updated IS 'Unix milliseconds.';
COMMENT ON COLUMN notifybc_records.body IS 'JSON.';
ALTER TABLE notifybc_records ALTER COLUMN body SET STATISTICS 0;
