-- Messages to uploaded lists.
-- +goose Up

CREATE TABLE sends (
  id   text COLLATE "C" PRIMARY KEY,
  body text NOT NULL
);
COMMENT ON TABLE sends IS 'Messages to uploaded lists.';
COMMENT ON COLUMN sends.body IS 'JSON.';

CREATE TABLE send_rows (
  send   text   COLLATE "C" NOT NULL,
  upload bigint NOT NULL,
  chunk  bigint NOT NULL,
  first  bigint NOT NULL,
  count  bigint NOT NULL,
  rows   bytea  NOT NULL,
  PRIMARY KEY (send, upload, chunk)
);
COMMENT ON TABLE send_rows IS 'Rows of uploads. An upload that is not complete, or was replaced, has rows for a moment.';
COMMENT ON COLUMN send_rows.first IS 'Number of its first row in the uploaded file.';
COMMENT ON COLUMN send_rows.count IS 'Number of rows.';
COMMENT ON COLUMN send_rows.rows IS 'Compressed lines of JSON.';

CREATE TABLE send_errors (
  send   text   COLLATE "C" NOT NULL,
  upload bigint NOT NULL,
  page   bigint NOT NULL,
  errors bytea  NOT NULL,
  PRIMARY KEY (send, upload, page)
);
COMMENT ON TABLE send_errors IS 'The first errors of an upload.';
COMMENT ON COLUMN send_errors.errors IS 'Compressed lines of JSON.';

CREATE TABLE send_parts (
  send    text   COLLATE "C" NOT NULL,
  part    bigint NOT NULL,
  event   text   NOT NULL,
  at      bigint NOT NULL,
  outcome bytea  NOT NULL,
  PRIMARY KEY (send, part)
);
COMMENT ON TABLE send_parts IS 'The parts of a send that were sent.';
COMMENT ON COLUMN send_parts.event IS 'Public id of the event, or an empty text if all recipients were refused.';
COMMENT ON COLUMN send_parts.at IS 'Unix nanoseconds.';
COMMENT ON COLUMN send_parts.outcome IS 'Compressed JSON: row ids of the recipients, and the recipients that were refused.';
ALTER TABLE sends ALTER COLUMN body SET STATISTICS 0;
ALTER TABLE send_rows ALTER COLUMN rows SET STATISTICS 0;
ALTER TABLE send_rows ALTER COLUMN rows SET STORAGE EXTERNAL;
ALTER TABLE send_errors ALTER COLUMN errors SET STATISTICS 0;
ALTER TABLE send_errors ALTER COLUMN errors SET STORAGE EXTERNAL;
ALTER TABLE send_parts ALTER COLUMN outcome SET STATISTICS 0;
ALTER TABLE send_parts ALTER COLUMN outcome SET STORAGE EXTERNAL;
