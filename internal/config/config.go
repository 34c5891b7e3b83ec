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

	// How it is reached.
	Listen      string `koanf:"listen" default:"127.0.0.1:8085" doc:"Address of the API, host:port. Port 0 takes a free one."`
	PublicURL   string `koanf:"public_url" default:"" doc:"URL under which recipients reach this server, for unsubscribe links: https://news.example.org. Without it, messages carry no such link."`
	TLSCert     string `koanf:"tls_cert" default:"" doc:"PEM file with the certificate chain; with tls_key, the API speaks HTTPS."`
	TLSKey      string `koanf:"tls_key" default:"" doc:"PEM file with the certificate's private key."`
	MetricsOpen bool   `koanf:"metrics_open" default:"false" doc:"Serve /metrics without a key to everybody, not only to this machine."`

	// Who may ask it how much.
	MaxRequests       int      `koanf:"max_requests" default:"4096" doc:"Requests that are answered at once; further ones get 503. 0 is no bound."`
	MaxRequestsPerKey int      `koanf:"max_requests_per_key" default:"2048" doc:"Requests of one key that are answered at once; further ones get 429. 0 is no bound."`
	RateLimit         int      `koanf:"rate_limit" default:"0" doc:"Requests that one key may send in a second, at most 1000000; more get 429. 0 is no limit. A body of many lines is one request."`
	RateBurst         int      `koanf:"rate_burst" default:"0" doc:"Requests that one key may send at once after a rest; 0 takes rate_limit."`
	CORSOrigins       []string `koanf:"cors_origins" default:"" doc:"Origins whose scripts may use the API from a browser, separated by commas: https://news.example.org, or * for all. Empty is none."`
	TrustedProxies    []string `koanf:"trusted_proxies" default:"" doc:"Networks of proxies in front of the API, separated by commas: 10.0.0.0/8. Their X-Forwarded-For tells from which address a wrong key came."`

	// How it runs.
	NATS         string        `koanf:"nats" default:"" doc:"URL of an external NATS cluster with JetStream; empty runs the bus inside this process. A URL with a password belongs into FANFARE_NATS or nats_file."`
	NATSFile     string        `koanf:"nats_file" default:"" doc:"File whose first line is the value of nats."`
	Roles        []string      `koanf:"roles" default:"all" doc:"Stages that run here, separated by commas: all, or some of api, match, deliver."`
	DrainTimeout time.Duration `koanf:"drain_timeout" default:"30s" doc:"For how long a stop waits for messages that are on the wire. What has not left by then is resumed by the next start."`

	// What it says.
	LogLevel  string `koanf:"log_level" default:"info" doc:"Least level that is logged: debug, info, warn or error. Addresses of people appear only at debug."`
	AccessLog string `koanf:"access_log" default:"errors" doc:"Answered requests that are logged: off, errors (400 and above) or all, which costs time at thousands of requests a second. Never with paths, queries or keys."`
	LogFormat string `koanf:"log_format" default:"text" doc:"Form of the log on standard error: text or json."`
}

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
