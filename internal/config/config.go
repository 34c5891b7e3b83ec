package config

import (
	"log/slog"
	"time"
)

// A Config holds the settings of a server. Each field is a key of the YAML file, a
// flag (with dashes) and an environment variable.
type Config struct {
	// Storage.
	DataDir      string        `koanf:"data_dir" default:"./fanfare-data" doc:"Directory of the stores, the embedded bus, the keys and admin.key. If it does not exist, it is created with mode 0700."`
	Durability   string        `koanf:"durability" default:"fsync" doc:"Whether acknowledged data survives a power loss (fsync) or only a crash of the process (relaxed). The setting applies to the whole server."`
	SyncInterval time.Duration `koanf:"sync_interval" default:"1s" doc:"With durability relaxed: interval at which data is synced to the disk, 100ms to 1m. A loss of power destroys at most what was acknowledged in this time and the second before."`
	DiskFloor    DiskFloor     `koanf:"disk_floor" default:"5% or 1GB" doc:"Free disk space below which the API rejects events with status 507, while delivery continues. A percentage, a size, or both, in which case the smaller one applies; 0 disables the check."`
	Retention    int           `koanf:"retention_days" default:"30" doc:"Number of days for which deliveries can be traced, at least 1. Older data is deleted by day of receipt. A day with open or scheduled messages is deleted only after these messages have been sent and another half of retention_days has passed since then."`
	AuditDays    int           `koanf:"audit_days" default:"365" doc:"Number of days for which audit log entries are stored, at least 1 and never fewer than retention_days."`
	Lease        time.Duration `koanf:"lease" default:"90s" doc:"Time for which a sender holds a batch before another sender can take it over, 10s to 1h. A sender does not start a transaction that could take longer than the remaining time."`

	SessionRetention time.Duration `koanf:"session_retention" default:"168h" doc:"Time for which an ended session and its data are stored, 1m or more. A purge removes the requests and responses of a durable session earlier."`

	// PostgreSQL instead of SQLite files in the data directory.
	DB                 string        `koanf:"db" default:"" doc:"URL of a PostgreSQL database, version 15 or later: postgres://fanfare@db.example.org/fanfare?sslmode=verify-full. If it is empty, all data is stored in SQLite files in data_dir. The bus and the keys are in data_dir in both cases. If the URL contains a password, set it in FANFARE_DB, or use db_password_file."`
	DBPasswordFile     string        `koanf:"db_password_file" default:"" doc:"File whose first line is the password of db and db_reads."`
	DBReads            string        `koanf:"db_reads" default:"" doc:"URL of a read-only standby of db, for reports: traces, histories and lists. The standby may lag behind. If it cannot be reached, the server reads from db."`
	DBConnections      int           `koanf:"db_connections" default:"16" doc:"Maximum number of open connections to db, 4 to 1000. The same limit applies separately to db_reads."`
	DBStatementTimeout time.Duration `koanf:"db_statement_timeout" default:"30s" doc:"Time after which PostgreSQL cancels a statement, 1s to 1h."`

	// Listener of the API.
	Listen      string `koanf:"listen" default:"127.0.0.1:8085" doc:"Address of the API, host:port. Port 0 selects a free port."`
	PublicURL   string `koanf:"public_url" default:"" doc:"Public URL of this server, used in unsubscribe links: https://news.example.org. If it is empty, messages contain no such links."`
	TLSCert     string `koanf:"tls_cert" default:"" doc:"PEM file with the certificate chain of the API. If tls_cert and tls_key are set, the API is served over HTTPS."`
	TLSKey      string `koanf:"tls_key" default:"" doc:"PEM file with the private key of tls_cert."`
	MetricsOpen bool   `koanf:"metrics_open" default:"false" doc:"Serve /metrics to all clients without a key, not only to clients on this machine."`

	// Compatible APIs.
	NotifyListen    string `koanf:"notify_listen" default:"" doc:"Address, host:port, at which the server answers clients of GOV.UK Notify, such as 127.0.0.1:8086. If it is empty, there is no such listener. If tls_cert and tls_key are set, it serves HTTPS. The API is at the root of the address."`
	NotifyPublicURL string `koanf:"notify_public_url" default:"" doc:"URL at which clients of GOV.UK Notify and recipients of files reach notify_listen, such as https://notify.example.org. If it is empty, links contain the address of the listener."`

	// Inbound mail.
	Inbound        string   `koanf:"inbound" default:"" doc:"Address, host:port, at which the server receives bounces and unsubscribe requests over SMTP, such as :25. If it is empty, the server receives no mail. It accepts only mail for inbound_domains that relates to a message from this server, and does not relay mail."`
	InboundDomains []string `koanf:"inbound_domains" default:"" doc:"Domains whose MX records point to this server, separated by commas: bounces.example.org. Channels use them in their returns setting, and in the address in the List-Unsubscribe header."`
	InboundName    string   `koanf:"inbound_name" default:"" doc:"Host name that the inbound mail server announces, which must match the MX records and the certificate. If it is empty, the first of inbound_domains is used. lmtp_listen and submission_listen announce it too, and without it the name of the machine."`
	InboundTLSCert string   `koanf:"inbound_tls_cert" default:"" doc:"PEM file with the certificate chain of the inbound mail server. If inbound_tls_cert and inbound_tls_key are set, the server offers STARTTLS."`
	InboundTLSKey  string   `koanf:"inbound_tls_key" default:"" doc:"PEM file with the private key of inbound_tls_cert."`

	// Mail for mailboxes.
	LMTPListen        string `koanf:"lmtp_listen" default:"" doc:"Address, host:port, at which a mail server such as Postfix delivers mail to mailboxes over LMTP, such as 127.0.0.1:24. If it is empty, there is no such listener. It accepts mail for all addresses that have a mailbox, without a login and without TLS, so use an address that only this mail server can reach."`
	SubmissionListen  string `koanf:"submission_listen" default:"" doc:"Address, host:port, at which mail programs send mail from mailboxes, with STARTTLS, such as :587. If it is empty, there is no such listener. Owners of mailboxes log in with app passwords. They can send to other mailboxes of this server, and to others if the setting submission of a channel permits it."`
	SubmissionsListen string `koanf:"submissions_listen" default:"" doc:"Address, host:port, at which mail programs send mail from mailboxes, with TLS from the first byte, such as :465. If it is empty, there is no such listener."`
	SubmissionTLSCert string `koanf:"submission_tls_cert" default:"" doc:"PEM file with the certificate chain of submission_listen and submissions_listen. If it is empty, inbound_tls_cert is used."`
	SubmissionRate    int    `koanf:"submission_rate" default:"720" doc:"Maximum number of recipients in an hour of the messages that the owner of one mailbox sends, over SMTP and JMAP together; 1 to 100000. Up to 200 of them can come at once."`
	SubmissionTLSKey  string `koanf:"submission_tls_key" default:"" doc:"PEM file with the private key of submission_tls_cert."`

	// Mail programs.
	IMAPListen  string `koanf:"imap_listen" default:"" doc:"Address, host:port, at which mail programs open mailboxes over IMAP, with STARTTLS, such as :143. If it is empty, there is no such listener. Logins need TLS, except from this machine."`
	IMAPSListen string `koanf:"imaps_listen" default:"" doc:"Address, host:port, at which mail programs open mailboxes over IMAP with TLS from the first byte, such as :993. If it is empty, there is no such listener."`
	IMAPTLSCert string `koanf:"imap_tls_cert" default:"" doc:"PEM file with the certificate chain of the IMAP server. If it is empty, inbound_tls_cert is used."`
	IMAPTLSKey  string `koanf:"imap_tls_key" default:"" doc:"PEM file with the private key of imap_tls_cert."`

	// Mailboxes.
	MailHost           string `koanf:"mail_host" default:"" doc:"Public host name at which mail programs reach imap_listen, imaps_listen, submission_listen and submissions_listen. It is in the settings that mail programs find by themselves and that subscribers see, and must match the certificates. If it is empty, inbound_name is used, then the host of public_url."`
	MailboxQuota       Size   `koanf:"mailbox_quota" default:"0" doc:"Maximum size of all messages in a new mailbox, such as 1GB. Messages that a channel stores do not count; those of mail programs and of other mail servers do. 0 means no limit. The quota of a mailbox that exists is changed with fanfare mailbox quota."`
	MailboxMaxMessage  Size   `koanf:"mailbox_max_message" default:"50MB" doc:"Maximum size of one message in a mailbox; 10KB to 200MB. Larger messages are refused."`
	MailboxSearchIndex bool   `koanf:"mailbox_search_index" default:"true" doc:"Keep an index of the messages in mailboxes, so that searches read only messages that can match. It is written in the background and needs about a fifth of the size of the texts. Searches find the same without it. Messages that came while it was off are added after the next start."`
	SubmissionDays     int    `koanf:"submission_retention_days" default:"30" doc:"Number of days after which the record of a message that a mail program has sent, a JMAP EmailSubmission, is removed; 1 to 3650. A record whose message is still under way stays until all recipients have a final state. The message itself stays in its mailbox."`

	// Web console.
	OIDC string `koanf:"oidc" default:"" doc:"YAML file with the issuers of OpenID Connect with which people can sign in to the web console, and the roles of these people in all services. If it is empty, people sign in with keys. All nodes of a cluster need the same file."`

	// Compatible APIs.
	NotifyBC string `koanf:"notifybc" default:"" doc:"YAML file with the settings of the NotifyBC API: its service, its address and its texts. If it is empty, the server does not offer that API. All nodes of a cluster need the same file."`

	// Limits of requests.
	MaxRequests       int      `koanf:"max_requests" default:"4096" doc:"Maximum number of concurrent requests. Requests above the limit get status 503; 0 means no limit."`
	MaxRequestsPerKey int      `koanf:"max_requests_per_key" default:"2048" doc:"Maximum number of concurrent requests per key. Requests above the limit get status 429; 0 means no limit."`
	RateLimit         int      `koanf:"rate_limit" default:"0" doc:"Maximum number of requests per second and key, up to 1000000. Requests above the limit get status 429; 0 means no limit. A body with many lines counts as one request."`
	RateBurst         int      `koanf:"rate_burst" default:"0" doc:"Maximum number of requests that a key can send in a burst; 0 means the value of rate_limit."`
	CORSOrigins       []string `koanf:"cors_origins" default:"" doc:"Origins whose scripts can use the API from a browser, separated by commas: https://news.example.org, or * for all. If it is empty, no origin is allowed."`
	TrustedProxies    []string `koanf:"trusted_proxies" default:"" doc:"Networks of reverse proxies in front of the API, separated by commas: 10.0.0.0/8. The server uses their X-Forwarded-For header to identify clients that send invalid keys."`

	// Outgoing connections.
	AllowNetworks []string `koanf:"allow_networks" default:"" doc:"Networks to which webhooks, and push messages of JMAP, can be sent in addition to the public Internet, separated by commas: 10.1.0.0/16. All other addresses of this machine, of private networks and of cloud metadata services are refused."`

	Resolver string `koanf:"resolver" default:"" doc:"DNS server, host:port, for the MX lookups of channels whose destinations are grouped by mail provider (by: mx), and for the DNS records of new DKIM keys. If it is empty, the resolvers of the machine are used."`

	// Attachments.
	MaxAttachments   Size     `koanf:"max_attachments" default:"10MB" doc:"Maximum total size of the files in one message as they are sent, which is 1.37 times their size on disk; 10KB to 40MB. Providers and relays accept 10 to 35 MB."`
	AllowAttachments []string `koanf:"allow_attachments" default:"" doc:"Executable file types that can be attached although many mail servers refuse them: extensions separated by commas, such as js,jar. If it is empty, none are allowed."`

	// Bus, roles and stop.
	NATS         string        `koanf:"nats" default:"" doc:"URL of an external NATS cluster with JetStream. If it is empty, the bus runs inside this process. If the URL contains a password, set it in FANFARE_NATS or nats_file."`
	NATSFile     string        `koanf:"nats_file" default:"" doc:"File whose first line is the value of nats."`
	Replicas     int           `koanf:"replicas" default:"0" doc:"Copies of each stream that a NATS cluster stores, 1 to 5. With 3, the streams survive the loss of one of three servers. 0 means 3 for the embedded servers of cluster_routes. For an external cluster, 0 leaves existing streams unchanged and creates new ones with one copy."`
	Roles        []string      `koanf:"roles" default:"all" doc:"Roles of this node in its cluster, separated by commas. lead: it can become the leader. deliver: it sends messages, for the leader or while it leads. match: it keeps a copy of the matching index in memory, and evaluates conditions for the leader. api: it only forwards requests to the leader. all: the same as lead,deliver. All nodes accept API requests. Without node, the only valid value is all."`
	DrainTimeout time.Duration `koanf:"drain_timeout" default:"30s" doc:"Time for which the server waits, when it stops, for messages that are being sent. Any that remain are resumed at the next start."`

	// Cluster.
	Node           string `koanf:"node" default:"" doc:"Name of this node in a cluster of servers that use the same db, and the same nats or cluster_routes: one of them leads, and the others take over if it fails. Allowed characters: a to z, A to Z, 0 to 9, dots and hyphens. If it is empty, this server is not part of a cluster."`
	NodeURL        string `koanf:"node_url" default:"" doc:"URL at which the other nodes reach the API of this node. If it is empty, the URL is derived from listen, which must then contain an address that the other nodes can reach."`
	NodeCA         string `koanf:"node_ca" default:"" doc:"PEM file with the certificate authorities that signed the certificates of the other nodes. If it is empty, the system's certificate authorities are used."`
	ClusterKeyFile string `koanf:"cluster_key_file" default:"" doc:"File whose first line is the cluster key: at least 32 characters, identical on all nodes. Generate one with openssl rand -base64 32. It encrypts the keys of the server in db, proves that a request was forwarded by a node, and authenticates the nodes and their embedded NATS servers to each other."`

	ClusterRoutes []string `koanf:"cluster_routes" default:"" doc:"Instead of nats: addresses, host:port, of the embedded NATS servers of all nodes, including this one, at least three, identical on all nodes. Each of these nodes runs a NATS server inside its process, and together they store the bus. The bus works while more than half of them respond. If tls_cert is set, the connections between the servers are encrypted with it, and node_ca applies to them, too."`
	ClusterListen string   `koanf:"cluster_listen" default:"" doc:"Address, host:port, at which the embedded NATS server of this node accepts connections from the others. If it is empty, the server listens on all interfaces, on the port of the address in cluster_routes that has the host of node_url."`

	Capture         string   `koanf:"capture" default:"" doc:"For staging: the target to which all messages are sent instead of the relays and receivers of their channels, smtp://host:port or a directory. If it is empty, messages are delivered normally."`
	CaptureFolders  []string `koanf:"capture_folders" default:"" doc:"Further folders whose captured messages the console and the API show, separated by commas: those in which fanfare sink keeps messages. The server writes nothing to them, and removes files from them only when captured messages are deleted."`
	AllowRecipients []string `koanf:"allow_recipients" default:"" doc:"For staging: recipients to whom messages are actually delivered, separated by commas: addresses, @example.org for a domain, or hosts of webhooks. Messages to all other recipients are captured or, if capture is not set, suppressed. If it is empty, recipients are not restricted."`

	ReplyRules string `koanf:"reply_rules" default:"" doc:"YAML file with rules for the replies of mail servers and webhook receivers, which take precedence over the built-in rules (see: fanfare replies). Changes take effect within seconds. If the file is invalid, the previous rules remain in effect."`

	// Match check.
	MatchCheck Share `koanf:"match_check" default:"3%" doc:"Share of the server's CPU time for the match check, which evaluates conditions a second time, independently of the matching index, before notifications are sent. Up to 50%, or unlimited, which checks each condition that the index reports as true for an event. With 0%, only conditions in quarantine are checked."`

	// Logs.
	LogLevel  string `koanf:"log_level" default:"info" doc:"Minimum log level: debug, info, warn or error. Recipient addresses are logged only at debug."`
	AccessLog string `koanf:"access_log" default:"errors" doc:"Which requests are logged: off, errors (status 400 and above) or all, which is slow at thousands of requests per second. The log never contains paths, queries or keys."`
	LogFormat string `koanf:"log_format" default:"text" doc:"Format of the log on standard error: text or json."`

	clusterKey string            // the first line of cluster_key_file
	origins    map[string]origin // of the values by key; nil if the program set them
}

// SQLite reports whether all data is in the data directory.
func (c *Config) SQLite() bool { return c.DB == "" }

// Fsync reports whether data is synced to disk before it is acknowledged.
func (c *Config) Fsync() bool { return c.Durability == "fsync" }

// Level returns the log level.
func (c *Config) Level() slog.Level {
	var l slog.Level
	if l.UnmarshalText([]byte(c.LogLevel)) != nil {
		return slog.LevelInfo
	}
	return l
}
