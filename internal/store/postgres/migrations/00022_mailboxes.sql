-- Accounts with their mailboxes and messages. Times are Unix seconds unless a comment says otherwise.
-- +goose Up

CREATE TABLE accounts (
  account      bigint   PRIMARY KEY,
  created_at   bigint   NOT NULL,
  state        bigint   NOT NULL,
  oldest       bigint   NOT NULL,
  max_bytes    bigint   NOT NULL,
  bytes        bigint   NOT NULL,
  max_messages bigint   NOT NULL,
  messages     bigint   NOT NULL,
  next_mailbox bigint   NOT NULL,
  next_email   bigint   NOT NULL,
  validity     bigint   NOT NULL,
  merged       bigint   NOT NULL,
  flags        smallint NOT NULL,
  service      text     NOT NULL,
  address      text     NOT NULL,
  UNIQUE (address, account)
) WITH (fillfactor = 50);
COMMENT ON TABLE accounts IS 'Accounts of subscribers, with what they have and may have.';
COMMENT ON COLUMN accounts.account IS 'Row of the subscriber.';
COMMENT ON COLUMN accounts.state IS 'ModSeq (RFC 7162) of the last change.';
COMMENT ON COLUMN accounts.merged IS 'The last block whose messages it has as rows.';
COMMENT ON COLUMN accounts.oldest IS 'Removals up to this ModSeq may be missing.';
COMMENT ON COLUMN accounts.max_bytes IS '0: no limit.';
COMMENT ON COLUMN accounts.max_messages IS '0: no limit.';
COMMENT ON COLUMN accounts.validity IS 'The last UIDVALIDITY that a mailbox was given.';
COMMENT ON COLUMN accounts.flags IS 'Bits, 1: disabled.';
ALTER TABLE accounts ALTER COLUMN address SET STATISTICS 0;

CREATE TABLE credentials (
  account    bigint  NOT NULL,
  credential bigint  NOT NULL,
  created_at bigint  NOT NULL,
  used_at    bigint  NOT NULL,
  iterations integer NOT NULL,
  name       text    NOT NULL,
  salt       bytea   NOT NULL,
  stored_key bytea   NOT NULL,
  server_key bytea   NOT NULL,
  PRIMARY KEY (account, credential)
) WITH (fillfactor = 80);
COMMENT ON TABLE credentials IS 'App passwords, as SCRAM-SHA-256 verifiers (RFC 5802, RFC 7677).';
COMMENT ON COLUMN credentials.used_at IS 'About when it was used last, 0: never.';
COMMENT ON COLUMN credentials.name IS 'Given by its owner.';
ALTER TABLE credentials
  ALTER COLUMN name SET STATISTICS 0,
  ALTER COLUMN salt SET STATISTICS 0,
  ALTER COLUMN stored_key SET STATISTICS 0,
  ALTER COLUMN server_key SET STATISTICS 0;

CREATE TABLE mailboxes (
  account     bigint   NOT NULL,
  mailbox     bigint   NOT NULL,
  parent      bigint   NOT NULL,
  sort_order  bigint   NOT NULL,
  validity    bigint   NOT NULL,
  uid_next    bigint   NOT NULL,
  recent_from bigint   NOT NULL,
  messages    bigint   NOT NULL,
  unseen      bigint   NOT NULL,
  deleted     bigint   NOT NULL,
  bytes       bigint   NOT NULL,
  highest     bigint   NOT NULL,
  created     bigint   NOT NULL,
  changed     bigint   NOT NULL,
  subscribed  smallint NOT NULL,
  name        text     NOT NULL,
  role        text     NOT NULL,
  PRIMARY KEY (account, mailbox)
) WITH (fillfactor = 50);
COMMENT ON TABLE mailboxes IS 'Mailboxes with their counts.';
COMMENT ON COLUMN mailboxes.parent IS '0: none.';
COMMENT ON COLUMN mailboxes.validity IS 'UIDVALIDITY.';
COMMENT ON COLUMN mailboxes.recent_from IS 'Messages from this UID on are new to every session.';
COMMENT ON COLUMN mailboxes.deleted IS 'Messages with the flag \Deleted.';
COMMENT ON COLUMN mailboxes.highest IS 'ModSeq of its messages.';
COMMENT ON COLUMN mailboxes.created IS 'ModSeq.';
COMMENT ON COLUMN mailboxes.changed IS 'ModSeq of its properties and counts.';
ALTER TABLE mailboxes ALTER COLUMN name SET STATISTICS 0;

CREATE TABLE messages (
  account  bigint   NOT NULL,
  email    bigint   NOT NULL,
  mailbox  bigint   NOT NULL,
  uid      bigint   NOT NULL,
  modseq   bigint   NOT NULL,
  created  bigint   NOT NULL,
  size     bigint   NOT NULL,
  received bigint   NOT NULL,
  saved    bigint   NOT NULL,
  thread   bigint   NOT NULL,
  content  bigint   NOT NULL,
  flags    smallint NOT NULL,
  keywords text     NOT NULL,
  PRIMARY KEY (account, email),
  UNIQUE (account, mailbox, uid),
  UNIQUE (account, modseq, email)
) WITH (fillfactor = 80);
COMMENT ON TABLE messages IS 'Messages in mailboxes, without their contents.';
COMMENT ON COLUMN messages.modseq IS 'ModSeq of the last change.';
COMMENT ON COLUMN messages.created IS 'ModSeq.';
COMMENT ON COLUMN messages.received IS 'INTERNALDATE.';
COMMENT ON COLUMN messages.saved IS 'When the message came to its mailbox.';
COMMENT ON COLUMN messages.flags IS 'Bits, 1: seen, 2: answered, 4: flagged, 8: deleted, 16: draft.';
COMMENT ON COLUMN messages.keywords IS 'Sorted, separated by spaces.';
ALTER TABLE messages ALTER COLUMN keywords SET STATISTICS 0;

CREATE TABLE removed (
  account   bigint   NOT NULL,
  modseq    bigint   NOT NULL,
  mailbox   bigint   NOT NULL,
  uid       bigint   NOT NULL,
  email     bigint   NOT NULL,
  thread    bigint   NOT NULL,
  created   bigint   NOT NULL,
  destroyed smallint NOT NULL,
  PRIMARY KEY (account, modseq, mailbox, uid)
);
COMMENT ON TABLE removed IS 'Messages that left a mailbox.';
COMMENT ON COLUMN removed.destroyed IS '0: it was moved.';

CREATE TABLE removed_mailboxes (
  account bigint NOT NULL,
  modseq  bigint NOT NULL,
  mailbox bigint NOT NULL,
  PRIMARY KEY (account, modseq, mailbox)
);
COMMENT ON TABLE removed_mailboxes IS 'Mailboxes that were removed.';

CREATE TABLE threads (
  account bigint NOT NULL,
  hash    bigint NOT NULL,
  thread  bigint NOT NULL,
  PRIMARY KEY (account, hash)
);
COMMENT ON TABLE threads IS 'The thread of each Message-ID that a message of the account has or refers to.';
COMMENT ON COLUMN threads.hash IS 'Of the Message-ID and the base subject.';

CREATE TABLE contents (
  content   bigint PRIMARY KEY,
  size      bigint NOT NULL,
  base      bigint NOT NULL,
  uses      bigint NOT NULL,
  unused    bigint NOT NULL,
  hash      bytea  NOT NULL UNIQUE,
  structure bytea  NOT NULL,
  UNIQUE (unused, content)
) WITH (fillfactor = 80);
COMMENT ON TABLE contents IS 'Stored bytes, once for all messages that have them.';
COMMENT ON COLUMN contents.base IS 'Content to which the data are a delta, 0: they are the bytes.';
COMMENT ON COLUMN contents.uses IS 'Messages and uploads that have it.';
COMMENT ON COLUMN contents.unused IS 'Time of the end of the last use, 0: it is used.';
COMMENT ON COLUMN contents.hash IS 'SHA-256.';
COMMENT ON COLUMN contents.structure IS 'The MIME structure in the form of package mimetree.';
ALTER TABLE contents
  ALTER COLUMN hash SET STATISTICS 0,
  ALTER COLUMN structure SET STATISTICS 0;

-- Contents are kept uncompressed: to compress them would cost more than to write them.
CREATE TABLE content_data (
  content bigint PRIMARY KEY,
  data    bytea  NOT NULL
);
COMMENT ON TABLE content_data IS 'The bytes, in a table of their own, so that the counts can change without rewriting them.';
ALTER TABLE content_data
  ALTER COLUMN data SET STORAGE EXTERNAL,
  ALTER COLUMN data SET STATISTICS 0;

CREATE TABLE uploads (
  account bigint NOT NULL,
  content bigint NOT NULL,
  at      bigint NOT NULL,
  PRIMARY KEY (account, content),
  UNIQUE (at, account, content)
);
COMMENT ON TABLE uploads IS 'Stored bytes that an account may use in messages.';

CREATE TABLE mailbox_numbers (
  given bigint NOT NULL,
  kind  text   PRIMARY KEY
) WITH (fillfactor = 50);
COMMENT ON TABLE mailbox_numbers IS 'The last numbers that were given.';
COMMENT ON COLUMN mailbox_numbers.kind IS 'content or credential.';

CREATE TABLE inbox_messages (
  account  bigint  NOT NULL,
  email    bigint  NOT NULL,
  manifest bigint  NOT NULL,
  position bigint  NOT NULL,
  at       bigint  NOT NULL,
  read_at  bigint  NOT NULL,
  ended_at bigint  NOT NULL,
  sent_day integer NOT NULL,
  ended    integer NOT NULL,
  PRIMARY KEY (account, email),
  UNIQUE (sent_day, manifest, position)
) WITH (fillfactor = 80);
COMMENT ON TABLE inbox_messages IS 'Messages that the channel inbox stored, from their delivery until its history is removed.';
COMMENT ON COLUMN inbox_messages.sent_day IS 'Of the delivery, with manifest and position.';
COMMENT ON COLUMN inbox_messages.at IS 'When it was stored.';
COMMENT ON COLUMN inbox_messages.read_at IS 'When it was seen first, 0: not yet.';
COMMENT ON COLUMN inbox_messages.ended_at IS 'When it was removed, 0: it is there.';
COMMENT ON COLUMN inbox_messages.ended IS '1: by its recipient, 2: recalled, 3: expired.';

CREATE TABLE inbox_broadcasts (
  seq         bigint  NOT NULL,
  stored      bigint  NOT NULL,
  read        bigint  NOT NULL,
  recalled    bigint  NOT NULL,
  expired     bigint  NOT NULL,
  recalled_at bigint  NOT NULL,
  expires_at  bigint  NOT NULL,
  work_at     bigint  NOT NULL,
  sent_day    integer NOT NULL,
  PRIMARY KEY (sent_day, seq),
  UNIQUE (work_at, sent_day, seq)
) WITH (fillfactor = 50);
COMMENT ON TABLE inbox_broadcasts IS 'Broadcasts with messages in inboxes.';
COMMENT ON COLUMN inbox_broadcasts.stored IS 'Messages.';
COMMENT ON COLUMN inbox_broadcasts.recalled IS 'Messages that a recall removed.';
COMMENT ON COLUMN inbox_broadcasts.recalled_at IS '0: not recalled.';
COMMENT ON COLUMN inbox_broadcasts.expires_at IS '0: never.';
COMMENT ON COLUMN inbox_broadcasts.work_at IS 'When messages must be removed next, 0: never.';

CREATE TABLE inbox_blocks (
  block    bigint  PRIMARY KEY,
  manifest bigint  NOT NULL,
  first    bigint  NOT NULL,
  last     bigint  NOT NULL,
  lowest   bigint  NOT NULL,
  highest  bigint  NOT NULL,
  base     bigint  NOT NULL,
  at       bigint  NOT NULL,
  sent_day integer NOT NULL,
  members  integer NOT NULL,
  merged   integer NOT NULL,
  UNIQUE (sent_day, manifest, first)
) WITH (fillfactor = 80);
COMMENT ON TABLE inbox_blocks IS 'Messages of a broadcast that were stored together, until the accounts have them as rows.';
COMMENT ON COLUMN inbox_blocks.block IS 'Ascending in the order of the commits.';
COMMENT ON COLUMN inbox_blocks.first IS 'Position of the first delivery.';
COMMENT ON COLUMN inbox_blocks.last IS 'Position of the last delivery.';
COMMENT ON COLUMN inbox_blocks.lowest IS 'Account.';
COMMENT ON COLUMN inbox_blocks.highest IS 'Account.';
COMMENT ON COLUMN inbox_blocks.merged IS 'Members that have their message as a row.';
COMMENT ON COLUMN inbox_blocks.base IS 'Content to which the messages are deltas.';
COMMENT ON COLUMN inbox_blocks.at IS 'When it was stored.';

CREATE TABLE inbox_block_data (
  block bigint PRIMARY KEY,
  data  bytea  NOT NULL
);
COMMENT ON TABLE inbox_block_data IS 'The messages of a block in the format of package mailbox.';
ALTER TABLE inbox_block_data
  ALTER COLUMN data SET STORAGE EXTERNAL,
  ALTER COLUMN data SET STATISTICS 0;
