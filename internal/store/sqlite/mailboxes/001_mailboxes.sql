-- Accounts with their mailboxes and messages. Times are Unix seconds unless a comment says otherwise.
CREATE TABLE accounts (
  account      INTEGER PRIMARY KEY,      -- row of the subscriber
  service      TEXT NOT NULL,
  address      TEXT NOT NULL,
  created_at   INTEGER NOT NULL,
  state        INTEGER NOT NULL,         -- ModSeq of the last change
  oldest       INTEGER NOT NULL,         -- removals up to this ModSeq may be missing
  max_bytes    INTEGER NOT NULL,         -- 0: no limit
  bytes        INTEGER NOT NULL,
  max_messages INTEGER NOT NULL,         -- 0: no limit
  messages     INTEGER NOT NULL,
  next_mailbox INTEGER NOT NULL,
  next_email   INTEGER NOT NULL,
  validity     INTEGER NOT NULL,         -- last UIDVALIDITY
  merged       INTEGER NOT NULL,         -- the last block whose messages it has as rows
  flags        INTEGER NOT NULL          -- 1: disabled
) STRICT;
CREATE INDEX accounts_by_address ON accounts (address, account);

CREATE TABLE credentials (
  account    INTEGER NOT NULL,
  credential INTEGER NOT NULL,
  name       TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  used_at    INTEGER NOT NULL,           -- 0: never
  iterations INTEGER NOT NULL,
  salt       BLOB NOT NULL,
  stored_key BLOB NOT NULL,
  server_key BLOB NOT NULL,
  PRIMARY KEY (account, credential)
) STRICT, WITHOUT ROWID;

CREATE TABLE mailboxes (
  account     INTEGER NOT NULL,
  mailbox     INTEGER NOT NULL,
  parent      INTEGER NOT NULL,          -- 0: none
  name        TEXT NOT NULL,
  role        TEXT NOT NULL,
  sort_order  INTEGER NOT NULL,
  subscribed  INTEGER NOT NULL,
  validity    INTEGER NOT NULL,          -- UIDVALIDITY
  uid_next    INTEGER NOT NULL,
  recent_from INTEGER NOT NULL,
  messages    INTEGER NOT NULL,
  unseen      INTEGER NOT NULL,
  deleted     INTEGER NOT NULL,
  bytes       INTEGER NOT NULL,
  highest     INTEGER NOT NULL,          -- ModSeq of its messages
  created     INTEGER NOT NULL,          -- ModSeq
  changed     INTEGER NOT NULL,          -- ModSeq of its properties and counts
  PRIMARY KEY (account, mailbox)
) STRICT, WITHOUT ROWID;

CREATE TABLE messages (
  account  INTEGER NOT NULL,
  email    INTEGER NOT NULL,
  mailbox  INTEGER NOT NULL,
  uid      INTEGER NOT NULL,
  modseq   INTEGER NOT NULL,
  created  INTEGER NOT NULL,             -- ModSeq
  flags    INTEGER NOT NULL,
  size     INTEGER NOT NULL,
  received INTEGER NOT NULL,
  saved    INTEGER NOT NULL,
  thread   INTEGER NOT NULL,
  content  INTEGER NOT NULL,
  keywords TEXT NOT NULL,
  PRIMARY KEY (account, email)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX messages_by_uid ON messages (account, mailbox, uid);
CREATE INDEX messages_by_change ON messages (account, modseq);

-- Messages that left a mailbox.
CREATE TABLE removed (
  account   INTEGER NOT NULL,
  modseq    INTEGER NOT NULL,
  mailbox   INTEGER NOT NULL,
  uid       INTEGER NOT NULL,
  email     INTEGER NOT NULL,
  thread    INTEGER NOT NULL,
  created   INTEGER NOT NULL,            -- ModSeq
  destroyed INTEGER NOT NULL,            -- 0: it was moved
  PRIMARY KEY (account, modseq, mailbox, uid)
) STRICT, WITHOUT ROWID;

CREATE TABLE removed_mailboxes (
  account INTEGER NOT NULL,
  modseq  INTEGER NOT NULL,
  mailbox INTEGER NOT NULL,
  PRIMARY KEY (account, modseq, mailbox)
) STRICT, WITHOUT ROWID;

-- The thread of each Message-ID that a message of the account has or refers to.
CREATE TABLE threads (
  account INTEGER NOT NULL,
  hash    INTEGER NOT NULL,              -- of the Message-ID and the base subject
  thread  INTEGER NOT NULL,
  PRIMARY KEY (account, hash)
) STRICT, WITHOUT ROWID;

-- Stored bytes, once for all messages that have them. Their data are in a table of their own, so that the counts can change
-- without rewriting them.
CREATE TABLE contents (
  content INTEGER PRIMARY KEY,
  hash    BLOB NOT NULL,                 -- SHA-256
  size    INTEGER NOT NULL,
  uses    INTEGER NOT NULL,              -- messages and uploads that have it
  base    INTEGER NOT NULL,              -- content to which the data are a delta, 0: they are the bytes
  unused  INTEGER NOT NULL,              -- time of the last use's end, 0: used
  structure BLOB NOT NULL                -- its MIME structure in the form of package mimetree
) STRICT;
CREATE UNIQUE INDEX contents_by_hash ON contents (hash);
CREATE INDEX contents_unused ON contents (unused, content) WHERE unused > 0;

CREATE TABLE content_data (
  content INTEGER PRIMARY KEY,
  data    BLOB NOT NULL
) STRICT;

CREATE TABLE uploads (
  account INTEGER NOT NULL,
  content INTEGER NOT NULL,
  at      INTEGER NOT NULL,
  PRIMARY KEY (account, content)
) STRICT, WITHOUT ROWID;
CREATE INDEX uploads_by_time ON uploads (at, account, content);

-- The last numbers that were given.
CREATE TABLE mailbox_numbers (
  kind  TEXT PRIMARY KEY,                -- content, credential
  given INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Messages that the channel inbox stored, from their delivery until its history is removed.
CREATE TABLE inbox_messages (
  account  INTEGER NOT NULL,
  email    INTEGER NOT NULL,
  sent_day INTEGER NOT NULL,             -- of the delivery, with manifest and position
  manifest INTEGER NOT NULL,
  position INTEGER NOT NULL,
  at       INTEGER NOT NULL,             -- when it was stored
  read_at  INTEGER NOT NULL,             -- when it was seen first, 0: not yet
  ended_at INTEGER NOT NULL,             -- when it was removed, 0: it is there
  ended    INTEGER NOT NULL,             -- 1: by its recipient, 2: recalled, 3: expired
  PRIMARY KEY (account, email)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX inbox_messages_by_delivery ON inbox_messages (sent_day, manifest, position);

-- Broadcasts with messages in inboxes.
CREATE TABLE inbox_broadcasts (
  sent_day    INTEGER NOT NULL,
  seq         INTEGER NOT NULL,
  stored      INTEGER NOT NULL,          -- messages
  read        INTEGER NOT NULL,
  recalled    INTEGER NOT NULL,          -- messages that a recall removed
  expired     INTEGER NOT NULL,
  recalled_at INTEGER NOT NULL,          -- 0: not recalled
  expires_at  INTEGER NOT NULL,          -- 0: never
  work_at     INTEGER NOT NULL,          -- when messages must be removed next, 0: never
  PRIMARY KEY (sent_day, seq)
) STRICT, WITHOUT ROWID;
CREATE INDEX inbox_broadcasts_by_work ON inbox_broadcasts (work_at, sent_day, seq) WHERE work_at > 0;

-- Messages of a broadcast that were stored together, until the accounts have them as rows.
CREATE TABLE inbox_blocks (
  block    INTEGER PRIMARY KEY,          -- ascending in the order of the commits
  sent_day INTEGER NOT NULL,             -- of the deliveries, with manifest and positions
  manifest INTEGER NOT NULL,
  first    INTEGER NOT NULL,             -- position
  last     INTEGER NOT NULL,             -- position
  lowest   INTEGER NOT NULL,             -- account
  highest  INTEGER NOT NULL,             -- account
  members  INTEGER NOT NULL,
  merged   INTEGER NOT NULL,             -- members that have their message as a row
  base     INTEGER NOT NULL,             -- content to which the messages are deltas
  at       INTEGER NOT NULL              -- when it was stored
) STRICT;
CREATE UNIQUE INDEX inbox_blocks_by_delivery ON inbox_blocks (sent_day, manifest, first);

CREATE TABLE inbox_block_data (
  block INTEGER PRIMARY KEY,
  data  BLOB NOT NULL                    -- in the format of package mailbox
) STRICT;
