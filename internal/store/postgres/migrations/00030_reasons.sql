-- Why deliveries will not reach their recipients: counted, and found by state.
-- +goose Up

ALTER TABLE completions ADD COLUMN reasons text COLLATE "C" NOT NULL DEFAULT '';
COMMENT ON COLUMN completions.reasons IS 'JSON: the deliveries that will not reach their recipients, counted by state and reason. Empty if there are none, or if the broadcast was completed before they were counted.';
ALTER TABLE completions ALTER COLUMN reasons SET STATISTICS 0;

-- Days whose tables are no partitions yet did not get it.
-- +goose StatementBegin
DO $$
DECLARE
  d date;
BEGIN
  FOR d IN SELECT day FROM days WHERE NOT attached LOOP
    EXECUTE format('ALTER TABLE %I ADD COLUMN IF NOT EXISTS reasons text COLLATE "C" NOT NULL DEFAULT %L', 'completions' || to_char(d, '_YYYYMMDD'), '');
    EXECUTE format('ALTER TABLE %I ALTER COLUMN reasons SET STATISTICS 0', 'completions' || to_char(d, '_YYYYMMDD'));
  END LOOP;
END $$;
-- +goose StatementEnd

-- As before, with an index of the attempts that ended without an acceptance. Days
-- of before do without, so that nobody waits while it is made.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION make_day(of date)
RETURNS void LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
  t record;
  c name;
BEGIN
  PERFORM pg_advisory_xact_lock('days'::regclass::oid::integer, 0);
  IF EXISTS (SELECT FROM days WHERE day = of) THEN
    RETURN;
  END IF;
  FOR t IN SELECT *, parent || to_char(of, '_YYYYMMDD') AS child FROM day_tables() LOOP
    EXECUTE format('CREATE TABLE %I (LIKE %I INCLUDING ALL, %s, CONSTRAINT of_day CHECK (day = %L)) WITH (%s)',
      t.child, t.parent, t.key, of, t.storage);
    EXECUTE format('ALTER TABLE %I ALTER COLUMN day SET DEFAULT %L', t.child, of);
    FOR c IN SELECT attname FROM pg_attribute WHERE attrelid = t.parent::regclass AND attstattarget = 0 AND attnum > 0 AND NOT attisdropped LOOP
      EXECUTE format('ALTER TABLE %I ALTER COLUMN %I SET STATISTICS 0', t.child, c); -- LIKE leaves that out
    END LOOP;
  END LOOP;
  EXECUTE format('CREATE INDEX ON %I (manifest, first, why, due_at) WHERE why > 0', 'due' || to_char(of, '_YYYYMMDD'));
  EXECUTE format('CREATE INDEX ON %I (state, manifest, position) WHERE state > 3', 'attempts' || to_char(of, '_YYYYMMDD'));
  INSERT INTO days (day, attached) VALUES (of, false);
  INSERT INTO counters (day, one, frozen, held, parked) VALUES (of, 1, 0, 0, 0);
  INSERT INTO history_position (day, one, frozen, segment) VALUES (of, 1, 0, 0);
  PERFORM attach_days();
END $$;
-- +goose StatementEnd
