package config

import (
	"log/slog"
	"time"
)

// A Config holds the settings of a server. Each field is a key of the YAML file, a
// flag (with dashes) and an environment variable.
type Config struct {
	// Storage.
	DataDir    string        `koanf:"data_dir" default:"./fanfare-data" doc:"Folder of the stores, the embedded bus, the keys and admin.key. It is created with mode 0700 if it is missing."`
	Durability string        `koanf:"durability" default:"fsync" doc:"Whether acknowledged data survives a power loss (fsync) or only a kill of the process (relaxed). It applies to the whole server."`
	DiskFloor  DiskFloor     `koanf:"disk_floor" default:"5% or 1GB" doc:"Free disk space below which the API answers events with 507 while delivery continues. A share, a size, or both, of which the smaller counts; 0 switches it off."`
	Retention  int           `koanf:"retention_days" default:"30" doc:"Days for which deliveries can be traced, at least 1. Older data is deleted one day of receipt at a time, and a day with open or scheduled messages only after they were sent and half of this time has passed."`
	AuditDays  int           `koanf:"audit_days" default:"365" doc:"Days for which the audit log keeps entries, at least 1; never fewer than retention_days."`
	Lease      time.Duration `koanf:"lease" default:"90s" doc:"Time for which a sender holds a batch before another sender may resume it, 10s to 1h. A send is not started if the remaining time is shorter than the send may take."`

	// PostgreSQL instead of SQLite files in the data directory.
	DB                 string        `koanf:"db" default:"" doc:"URL of a PostgreSQL database, version 15 or later: postgres://fanfare@db.example.org/fanfare?sslmode=verify-full. If it is empty, all data is stored in SQLite files in data_dir. The bus and the keys are in data_dir in both cases. Put a URL with a password into FANFARE_DB, or use db_password_file."`
	DBPasswordFile     string        `koanf:"db_password_file" default:"" doc:"File whose first line is the password of db and db_reads."`
	DBReads            string        `koanf:"db_reads" default:"" doc:"URL of a read-only standby of db, for reports: traces, histories, lists. The standby may lag behind; while it cannot be reached, the server reads from db."`
	DBConnections      int           `koanf:"db_connections" default:"16" doc:"Maximum of open connections to db, 4 to 1000; db_reads has the same number of its own."`
	DBStatementTimeout time.Duration `koanf:"db_statement_timeout" default:"30s" doc:"Time after which PostgreSQL cancels a statement, 1s to 1h."`

	// Listener of the API.
	Listen      string `koanf:"listen" default:"127.0.0.1:8085" doc:"Address of the API, host:port. Port 0 selects a free one."`
	PublicURL   string `koanf:"public_url" default:"" doc:"URL under which recipients reach this server, for unsubscribe links: https://news.example.org. Without it, messages contain no such link."`
	TLSCert     string `koanf:"tls_cert" default:"" doc:"PEM file with the certificate chain; together with tls_key, the API is served over HTTPS."`
	TLSKey      string `koanf:"tls_key" default:"" doc:"PEM file with the private key of the certificate."`
	MetricsOpen bool   `koanf:"metrics_open" default:"false" doc:"Serve /metrics without a key to all clients, not only to this machine."`

	// Inbound mail.
	Inbound        string   `koanf:"inbound" default:"" doc:"Address at which the server receives bounces and unsubscribe mails over SMTP, host:port, such as :25. If it is empty, the server receives no mail. It accepts only mail for inbound_domains that answers a message of this server, and relays nothing."`
	InboundDomains []string `koanf:"inbound_domains" default:"" doc:"Domains whose MX records name this server, separated by commas: bounces.example.org. Channels use them with returns, and their List-Unsubscribe header has an address in them."`
	InboundName    string   `koanf:"inbound_name" default:"" doc:"Host name that the inbound mail server announces, the same as in the MX records and the certificate. If it is empty, the first of inbound_domains is used."`
	InboundTLSCert string   `koanf:"inbound_tls_cert" default:"" doc:"PEM file with the certificate chain of the inbound mail server; together with inbound_tls_key, it offers STARTTLS."`
	InboundTLSKey  string   `koanf:"inbound_tls_key" default:"" doc:"PEM file with the private key of inbound_tls_cert."`

	// Limits of requests.
	MaxRequests       int      `koanf:"max_requests" default:"4096" doc:"Requests that the server handles at the same time; further ones get 503. 0 sets no limit."`
	MaxRequestsPerKey int      `koanf:"max_requests_per_key" default:"2048" doc:"Requests of one key that the server handles at the same time; further ones get 429. 0 sets no limit."`
	RateLimit         int      `koanf:"rate_limit" default:"0" doc:"Requests that one key may send in a second, at most 1000000; further ones get 429. 0 sets no limit. A body with many lines is one request."`
	RateBurst         int      `koanf:"rate_burst" default:"0" doc:"Requests that one key may send at once after a pause; 0 uses the value of rate_limit."`
	CORSOrigins       []string `koanf:"cors_origins" default:"" doc:"Origins whose scripts may use the API from a browser, separated by commas: https://news.example.org, or * for all. Empty permits none."`
	TrustedProxies    []string `koanf:"trusted_proxies" default:"" doc:"Networks of proxies in front of the API, separated by commas: 10.0.0.0/8. Their X-Forwarded-For header gives the address from which a wrong key was sent."`

	// Outgoing connections.
	AllowNetworks []string `koanf:"allow_networks" default:"" doc:"Networks that webhooks may reach in addition to the public Internet, separated by commas: 10.1.0.0/16. Without it, addresses of this machine, of private networks and of cloud metadata services are refused."`

	Resolver string `koanf:"resolver" default:"" doc:"DNS server, host:port, for the mail exchangers of domains on channels that have destinations by mx, and for the DNS records of DKIM keys that wait for them. If it is empty, the resolvers of the machine are used."`

	// Attachments.
	MaxAttachments   Size     `koanf:"max_attachments" default:"10MB" doc:"Maximum total size of the files of one mail as they are sent, which is 1.37 times their size on disk; 10KB to 40MB. Providers and relays accept 10 to 35 MB."`
	AllowAttachments []string `koanf:"allow_attachments" default:"" doc:"Executable file types that may be attached although many mail servers refuse them: extensions separated by commas, such as js,jar. Empty permits none."`

	// Bus, roles and stop.
	NATS         string        `koanf:"nats" default:"" doc:"URL of an external NATS cluster with JetStream; if it is empty, the bus runs inside this process. Put a URL with a password into FANFARE_NATS or nats_file."`
	NATSFile     string        `koanf:"nats_file" default:"" doc:"File whose first line is the value of nats."`
	Roles        []string      `koanf:"roles" default:"all" doc:"Stages that run in this process. The only value is all."`
	DrainTimeout time.Duration `koanf:"drain_timeout" default:"30s" doc:"Time for which a stop waits for messages that are being sent. The next start resumes the remaining ones."`

	Capture         string   `koanf:"capture" default:"" doc:"For staging: the target to which the messages of all channels go instead of their relays and receivers, smtp://host:port or a folder. If it is empty, messages are delivered."`
	AllowRecipients []string `koanf:"allow_recipients" default:"" doc:"For staging: recipients to whom messages are really delivered, separated by commas: addresses, @example.org for a domain, hosts of webhooks. Messages to all others are captured; without capture they are suppressed. If it is empty, there is no such list."`

	ReplyRules string `koanf:"reply_rules" default:"" doc:"YAML file with rules for the replies of mail servers and webhook receivers, which take precedence over the built-in rules (see: fanfare replies). A change takes effect within seconds; if the file is invalid, the previous rules stay in effect."`

	// Match check.
	MatchCheck Share `koanf:"match_check" default:"3%" doc:"Share of the server's processor time for evaluating conditions a second time, independently of the matching index, before anybody is notified: up to 50%, or unlimited, which checks every condition that the index reports as true for an event. 0% checks only conditions in quarantine."`

	// Logs.
	LogLevel  string `koanf:"log_level" default:"info" doc:"Lowest level that is logged: debug, info, warn or error. Addresses of people appear only at debug."`
	AccessLog string `koanf:"access_log" default:"errors" doc:"Requests that are logged: off, errors (status 400 and above) or all, which is slow at thousands of requests a second. The log never contains paths, queries or keys."`
	LogFormat string `koanf:"log_format" default:"text" doc:"Format of the log on standard error: text or json."`
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
