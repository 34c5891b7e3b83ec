package wire

import "time"

// A Mailbox is the mailbox of a subscriber.
type Mailbox struct {
	Address    string       `json:"address" doc:"mail address, which is also the user name of mail programs"`
	Service    string       `json:"service" doc:"service of the subscriber"`
	Subscriber string       `json:"subscriber" doc:"internal id of the subscriber's address, per-..."`
	CreatedAt  time.Time    `json:"created_at" doc:"when the mailbox was created"`
	Disabled   bool         `json:"disabled" doc:"nobody can log in, and neither mail servers nor channels can deliver to it"`
	Quota      MailboxQuota `json:"quota"`
	Folders    []Folder     `json:"folders,omitempty" doc:"the folders; absent in lists"`
}

// A MailboxQuota has the limits of a mailbox and their use. Messages that channels store do not count.
type MailboxQuota struct {
	MaxBytes    int64 `json:"max_bytes" doc:"maximum size of all messages in bytes; 0: no limit"`
	Bytes       int64 `json:"bytes" doc:"size of the messages that count"`
	MaxMessages int64 `json:"max_messages" doc:"maximum number of messages; 0: no limit"`
	Messages    int64 `json:"messages" doc:"number of messages that count"`
}

// A Folder is a folder of a mailbox.
type Folder struct {
	Name       string `json:"name" doc:"name, with those of the folders that contain it, separated by /"`
	Role       string `json:"role,omitempty" doc:"inbox, drafts, sent, trash, junk or archive"`
	Subscribed bool   `json:"subscribed" doc:"mail programs show it"`
	Messages   int64  `json:"messages" doc:"number of messages"`
	Unread     int64  `json:"unread" doc:"number of messages that were not opened"`
	Bytes      int64  `json:"bytes" doc:"size of the messages"`
}

// A MailboxPage is a page of mailboxes, in the order of the subscribers.
type MailboxPage struct {
	Mailboxes []Mailbox `json:"mailboxes" doc:"the mailboxes, without their folders"`
	Next      string    `json:"next,omitempty" doc:"the cursor of the next page; absent at the end"`
}

// A MailboxPatch changes a mailbox (JSON Merge Patch, RFC 7396): absent members do not change.
type MailboxPatch struct {
	MaxBytes    int64 `json:"max_bytes,omitempty" minimum:"0" doc:"maximum size of all messages in bytes; 0 or null: no limit"`
	MaxMessages int64 `json:"max_messages,omitempty" minimum:"0" doc:"maximum number of messages; 0 or null: no limit"`
	Disabled    bool  `json:"disabled,omitempty" doc:"true: nobody can log in, and neither mail servers nor channels can deliver to it"`
}

// A MailboxImport is the result of an import.
type MailboxImport struct {
	Stored int `json:"stored" doc:"number of messages that were stored"`
}

// A SearchIndex is the state of the search index of mailboxes.
type SearchIndex struct {
	Enabled bool      `json:"enabled" doc:"whether there is an index; the setting mailbox_search_index"`
	Waiting int       `json:"waiting" doc:"messages that wait for the index, at most 1,000,000; equal messages count once"`
	Since   time.Time `json:"since,omitzero" doc:"since when messages have been waiting without a break; absent if none waits"`
}

// A Reindexing is a part of the work of indexing messages again.
type Reindexing struct {
	Queued int    `json:"queued" doc:"messages that were put into the queue of the index; equal messages count once"`
	Next   string `json:"next,omitempty" doc:"cursor for the next part; absent if there is none"`
}
