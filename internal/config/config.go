package config

import (
	"log/slog"
	"time"
)

// A Config is all that a server is told from outside. Each field is a key of
// the YAML file, a flag (with dashes) and an environment variable.
type Config struct {
	// Where everything is kept.
	DataDir    string        `koanf:"data_dir" default:"./fanfare-data" doc:"Folder of everything that is kept: the stores, the embedded bus and admin.key. Made with mode 0700 if it is missing."`
	Durability string        `koanf:"durability" default:"fsync" doc:"What was acknowledged survives power loss (fsync) or only a kill of the process (relaxed). For the whole server."`
	DiskFloor  DiskFloor     `koanf:"disk_floor" default:"5% or 1GB" doc:"Below this much free disk, intake answers 507 and delivery goes on. A share, a size, or both, of which the smaller counts; 0 switches it off."`
	Retention  int           `koanf:"retention_days" default:"30" doc:"Days for which deliveries can be traced, at least 1. Older days are deleted a day at a time."`
	AuditDays  int           `koanf:"audit_days" default:"365" doc:"Days for which the audit tells who changed what, at least 1; never fewer than retention_days."`
	Lease      time.Duration `koanf:"lease" default:"90s" doc:"For how long a deliverer holds a batch before another one may resume it, 10s to 1h. Nothing is started with less left of it than a send may take."`

	// Where it is kept instead of the data directory.
	DB                 string        `koanf:"db" default:"" doc:"URL of a PostgreSQL database, version 15 or later: postgres://fanfare@db.example.org/fanfare?sslmode=verify-full. Empty keeps everything in SQLite files in data_dir. The bus and the keys are in data_dir with either. A URL with a password belongs into FANFARE_DB; or use db_password_file."`
	DBPasswordFile     string        `koanf:"db_password_file" default:"" doc:"File whose first line is the password of db and db_reads."`
	DBReads            string        `koanf:"db_reads" default:"" doc:"URL of a read-only standby of db, for reports: traces, histories, lists. It may be behind; while it cannot be reached, db is asked."`
	DBConnections      int           `koanf:"db_connections" default:"16" doc:"Connections to db that are open at once at most, 4 to 1000; db_reads has as many of its own."`
	DBStatementTimeout time.Duration `koanf:"db_statement_timeout" default:"30s" doc:"For how long PostgreSQL may work on one statement before it ends it, 1s to 1h."`

	// How it is reached.
	Listen      string `koanf:"listen" default:"127.0.0.1:8085" doc:"Address of the API, host:port. Port 0 takes a free one."`
	PublicURL   string `koanf:"public_url" default:"" doc:"URL under which recipients reach this server, for unsubscribe links: https://news.example.org. Without it, messages carry no such link."`
	TLSCert     string `koanf:"tls_cert" default:"" doc:"PEM file with the certificate chain; with tls_key, the API speaks HTTPS."`
	TLSKey      string `koanf:"tls_key" default:"" doc:"PEM file with the certificate's private key."`
	MetricsOpen bool   `koanf:"metrics_open" default:"false" doc:"Serve /metrics without a key to everybody, not only to this machine."`

	// What comes back of mails.
	Inbound        string   `koanf:"inbound" default:"" doc:"Address at which bounces and mails to unsubscribe come in over SMTP, host:port, such as :25. Empty takes none. It takes mail for inbound_domains alone, and of that only what answers a message of this server: it relays nothing."`
	InboundDomains []string `koanf:"inbound_domains" default:"" doc:"Domains whose MX records name this server, separated by commas: bounces.example.org. Channels use them with returns; their List-Unsubscribe names an address there too."`
	InboundName    string   `koanf:"inbound_name" default:"" doc:"Name with which the inbound server introduces itself, as the MX records and the certificate have it. Empty takes the first of inbound_domains."`
	InboundTLSCert string   `koanf:"inbound_tls_cert" default:"" doc:"PEM file with the certificate chain of the inbound server; with inbound_tls_key it offers STARTTLS."`
	InboundTLSKey  string   `koanf:"inbound_tls_key" default:"" doc:"PEM file with the private key of inbound_tls_cert."`

	// Who may ask it how much.
	MaxRequests       int      `koanf:"max_requests" default:"4096" doc:"Requests that are answered at once; further ones get 503. 0 is no bound."`
	MaxRequestsPerKey int      `koanf:"max_requests_per_key" default:"2048" doc:"Requests of one key that are answered at once; further ones get 429. 0 is no bound."`
	RateLimit         int      `koanf:"rate_limit" default:"0" doc:"Requests that one key may send in a second, at most 1000000; more get 429. 0 is no limit. A body of many lines is one request."`
	RateBurst         int      `koanf:"rate_burst" default:"0" doc:"Requests that one key may send at once after a rest; 0 takes rate_limit."`
	CORSOrigins       []string `koanf:"cors_origins" default:"" doc:"Origins whose scripts may use the API from a browser, separated by commas: https://news.example.org, or * for all. Empty is none."`
	TrustedProxies    []string `koanf:"trusted_proxies" default:"" doc:"Networks of proxies in front of the API, separated by commas: 10.0.0.0/8. Their X-Forwarded-For tells from which address a wrong key came."`

	// Whom it speaks to.
	AllowNetworks []string `koanf:"allow_networks" default:"" doc:"Networks to which webhooks may go beside the public Internet, separated by commas: 10.1.0.0/16. Addresses of this machine, of private networks and of clouds' metadata are refused otherwise."`

	Resolver string `koanf:"resolver" default:"" doc:"DNS server, host:port, that is asked for the mail exchangers of domains where a channel has destinations by mx, and for the records of DKIM keys that wait for them. Empty asks those of the machine."`

	// What may go with a mail.
	MaxAttachments   Size     `koanf:"max_attachments" default:"10MB" doc:"How large the files of one mail may be together, as they are sent, which is 1.37 times what they are on disk; 10KB to 40MB. Providers and relays take 10 to 35 MB."`
	AllowAttachments []string `koanf:"allow_attachments" default:"" doc:"Files that are attached though they are programs, which many mail servers refuse: extensions separated by commas, such as js,jar. Empty is none."`

	// How it runs.
	NATS         string        `koanf:"nats" default:"" doc:"URL of an external NATS cluster with JetStream; empty runs the bus inside this process. A URL with a password belongs into FANFARE_NATS or nats_file."`
	NATSFile     string        `koanf:"nats_file" default:"" doc:"File whose first line is the value of nats."`
	Roles        []string      `koanf:"roles" default:"all" doc:"Stages that run here, separated by commas: all, or some of api, match, deliver."`
	DrainTimeout time.Duration `koanf:"drain_timeout" default:"30s" doc:"For how long a stop waits for messages that are on the wire. What has not left by then is resumed by the next start."`

	Capture         string   `koanf:"capture" default:"" doc:"For staging: where the letters of all channels go instead of their relays and receivers, smtp://host:port or a folder. Empty lets them leave."`
	AllowRecipients []string `koanf:"allow_recipients" default:"" doc:"For staging: to whom letters leave for real, separated by commas: addresses, @example.org for a domain, hosts of webhooks. All others are captured; without capture they are suppressed. Empty is no such list."`

	ReplyRules string `koanf:"reply_rules" default:"" doc:"YAML file with rules for what next hops answer, which go before the built-in ones (see: fanfare replies). A change is in force within seconds; a file that cannot be used leaves what is in force."`

	// How sure it is of its matches.
	MatchCheck Share `koanf:"match_check" default:"3%" doc:"Share of the server's processor time for evaluating conditions a second time, independently of the matching index, before anybody is notified: up to 50%, or unlimited, which checks every condition that the index takes for true at every event. 0% checks only conditions in quarantine."`

	// What it says.
	LogLevel  string `koanf:"log_level" default:"info" doc:"Least level that is logged: debug, info, warn or error. Addresses of people appear only at debug."`
	AccessLog string `koanf:"access_log" default:"errors" doc:"Answered requests that are logged: off, errors (400 and above) or all, which costs time at thousands of requests a second. Never with paths, queries or keys."`
	LogFormat string `koanf:"log_format" default:"text" doc:"Form of the log on standard error: text or json."`
}

// SQLite reports whether everything is kept in the data directory.
func (c *Config) SQLite() bool { return c.DB == "" }

// Ahead is how far ahead an event may say when it is to leave: half of the time for
// which it is kept, so that the other half is left for what follows.
func (c *Config) Ahead() time.Duration { return time.Duration(c.Retention) * 12 * time.Hour }

// Fsync reports whether what is acknowledged is synced to disk first.
func (c *Config) Fsync() bool { return c.Durability == "fsync" }

// Level returns the log level.
func (c *Config) Level() slog.Level {
	var l slog.Level
	if l.UnmarshalText([]byte(c.LogLevel)) != nil {
		return slog.LevelInfo
	}
	return l
}
